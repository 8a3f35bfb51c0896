#!/usr/bin/env python3
"""Tests of what compare.py computes and judges; none measures anything."""
import contextlib
import io
import statistics
import sys
import unittest

import compare
import engines
import paired
import report
import sweep
import targets

ZEN = targets.Machine("AMD EPYC", intel=False, amx=False)
INTEL = targets.Machine("Intel Xeon", intel=True, amx=False)
INTEL_AMX = targets.Machine("Intel Xeon", intel=True, amx=True)


def pair(probe: float, ours: float = 1.0, peer: float = 2.0) -> paired.Pair:
    return paired.Pair({"pp512": ours, "tg32": 1.0}, {"pp512": peer, "tg32": 1.0}, probe)


class Statistics(unittest.TestCase):
    def test_pairs_of_a_slow_machine_are_discarded(self):
        pairs = [pair(10.0), pair(7.0), pair(6.9), pair(9.0)]
        self.assertEqual([p.probe for p in paired.kept(pairs)], [10.0, 7.0, 9.0])
        self.assertEqual(paired.kept([]), [])

    def test_a_faster_probe_later_discards_earlier_pairs(self):
        self.assertEqual(len(paired.kept([pair(10.0), pair(10.0)])), 2)
        self.assertEqual(len(paired.kept([pair(10.0), pair(10.0), pair(20.0)])), 1)

    def test_the_ratio_is_the_median_of_the_pairs_ratios_not_the_ratio_of_medians(self):
        pairs = [pair(1.0, ours=1.0, peer=4.0), pair(1.0, ours=10.0, peer=10.0), pair(1.0, ours=2.0, peer=6.0)]
        found = paired.compare(pairs)[0]
        self.assertEqual(found.test, "pp512")
        self.assertEqual(found.ratios, [4.0, 1.0, 3.0])
        self.assertEqual(found.ratio, 3.0)

    def test_a_test_that_only_one_side_has_is_left_out(self):
        one = pair(1.0)
        del one.peer["tg32"]
        self.assertEqual([c.test for c in paired.compare([one])], ["pp512"])

    def test_the_bound_is_repeatable_and_below_the_median(self):
        values = [3.0, 3.4, 2.9, 3.2, 3.1, 2.2, 3.3, 3.0, 3.5]
        bound = paired.lower_bound_of_median(values)
        self.assertEqual(bound, paired.lower_bound_of_median(values))
        self.assertLessEqual(bound, statistics.median(values))
        self.assertGreaterEqual(bound, 2.9)

    def test_the_bound_covers_as_often_as_it_says(self):
        # The median of nine uniform values on [0, 2] is around 1: the bound is below 1 in some nine of ten samples.
        generator = paired.random.Random(5)
        below = sum(paired.lower_bound_of_median([generator.uniform(0, 2) for _ in range(9)], resamples=400) <= 1.0 for _ in range(300))
        self.assertGreater(below / 300, 0.82)
        self.assertLess(below / 300, 0.98)

    def test_equal_pairs_have_no_spread(self):
        self.assertEqual(paired.lower_bound_of_median([2.5] * 9), 2.5)
        self.assertEqual(paired.lower_bound_of_median([2.5]), 2.5)


class Targets(unittest.TestCase):
    def ratio(self, test, weights, cache="f16", machine=ZEN, peer="llama"):
        return targets.target_of(test, weights, cache, machine, peer).ratio

    def test_prefill(self):
        for weights in ("q8_0", "q4_K_M", "Q4_0", "iq4_xs", "mxfp4"):
            self.assertEqual(self.ratio("pp512", weights), 3.0, weights)
        self.assertEqual(self.ratio("pp512", "f16"), 1.15)
        self.assertEqual(self.ratio("pp512", "f16", machine=INTEL), 1.3)
        self.assertIsNone(self.ratio("pp512", "bf16"))
        self.assertEqual(self.ratio("pp512", "iq1_s"), 1.5)

    def test_batched_decode(self):
        self.assertEqual(self.ratio("tg32x16", "q8_0"), 3.0)
        self.assertEqual(self.ratio("tg32x16", "q8_0", machine=INTEL_AMX), 2.3)

    def test_decode(self):
        self.assertEqual(targets.target_of("tg32", "q8_0", "f16", ZEN).read_share, 0.92)
        self.assertEqual(targets.target_of("tg32", "q4_K_M", "f16", ZEN).read_share, 0.75)
        self.assertEqual(self.ratio("tg32", "q6_K"), 1.15)
        self.assertEqual(self.ratio("tg32", "tq2_0"), 1.0)

    def test_depth_depends_on_the_cache(self):
        self.assertEqual(self.ratio("pp512@d4096", "q8_0"), 1.9)
        self.assertEqual(self.ratio("pp512@d4096", "q8_0", machine=INTEL), 2.2)
        self.assertEqual(self.ratio("pp512@d4096", "q8_0", cache="q8_0"), 10.0)
        self.assertEqual(self.ratio("tg32@d4096", "q4_0"), 2.2)
        self.assertEqual(self.ratio("tg32@d4096", "q4_0", cache="q8_0"), 4.0)

    def test_other_lengths_are_reported_only(self):
        self.assertEqual(targets.target_of("pp64", "q8_0", "f16", ZEN), targets.Target())

    def test_openvino_counts_where_the_processor_has_amx(self):
        self.assertEqual(self.ratio("pp512", "q8_0", machine=INTEL_AMX, peer="openvino"), 1.5)
        self.assertIsNone(self.ratio("pp512", "q8_0", machine=INTEL, peer="openvino"))

    def test_the_lower_bound_decides(self):
        target = targets.Target(ratio=3.0)
        self.assertTrue(targets.passes(target, 3.0, 0.3, None, None))
        self.assertFalse(targets.passes(target, 2.99, 0.3, None, None))

    def test_four_fifths_of_the_own_roofline_pass_whatever_the_peer_does(self):
        target = targets.Target(ratio=3.0, read_share=0.92)
        self.assertTrue(targets.passes(target, 1.0, 0.80, 0.80, None))
        self.assertFalse(targets.passes(target, 1.0, 0.79, 0.79, None))

    def test_decode_needs_the_ratio_and_the_share_of_the_roofline(self):
        target = targets.target_of("tg32", "q4_0", "f16", ZEN)
        self.assertTrue(targets.passes(target, 1.2, 0.76, 0.76, 0.5))
        self.assertFalse(targets.passes(target, 1.2, 0.70, 0.70, 0.5))
        self.assertFalse(targets.passes(target, 1.1, 0.76, 0.76, 0.5))

    def test_a_peer_at_the_roofline_need_not_be_beaten_by_much(self):
        target = targets.target_of("tg32", "q6_K", "f16", ZEN)
        self.assertFalse(targets.passes(target, 1.05, 0.7, 0.7, 0.89))
        self.assertTrue(targets.passes(target, 1.05, 0.7, 0.7, 0.90))

    def test_what_was_not_measured_is_not_held_against_a_cell(self):
        self.assertTrue(targets.passes(targets.target_of("tg32", "q8_0", "f16", ZEN), 1.2, None, None, None))

    def test_resident_limit(self):
        self.assertEqual(targets.resident_limit_bytes(1000, 7), 1100 + 7 + (64 << 20))


class Report(unittest.TestCase):
    def cell(self, **changes):
        given = {"test": "pp512", "ours": 300.0, "peer": 100.0, "unit": "tok/s", "ratios": [2.9, 3.1, 3.0], "lower_bound": 2.9,
                 "target": targets.Target(ratio=2.5), "own_share": 0.4}
        return report.Cell(**(given | changes))

    def test_a_line_holds_figures_and_verdict(self):
        self.assertEqual(report.line(self.cell()),
                         "| pp512 | 300 tok/s | 100 tok/s | 3.00 | 2.90 to 3.10 | 2.90 | 40 % | 2.50 | pass |\n")
        self.assertIn("MISS", report.line(self.cell(lower_bound=2.4)))
        self.assertIn("reported", report.line(self.cell(target=targets.Target())))

    def test_a_limit_is_judged_instead_of_the_ratio(self):
        self.assertTrue(self.cell(limit=300.0, target=targets.Target()).passed)
        line = report.line(self.cell(limit=299.0, target=targets.Target()))
        self.assertIn("at most 299 tok/s | MISS", line)

    def test_every_line_has_the_header_s_columns(self):
        rows = report.table([self.cell(), self.cell(own_share=None)]).splitlines()
        self.assertEqual({row.count("|") for row in rows}, {10})


class Processes(unittest.TestCase):
    def engine(self, script):
        return engines.Engine([sys.executable, "-c", script])

    def test_each_request_has_an_answer(self):
        script = "import sys\nfor line in sys.stdin: print('{\"asked\": \"%s\"}' % line.strip(), flush=True)"
        with self.engine(script) as engine:
            self.assertEqual(engine.ask("probe"), {"asked": "probe"})
            self.assertEqual(engine.ask("round"), {"asked": "round"})

    def test_a_process_that_ends_is_an_error_with_its_exit_code(self):
        with self.engine("import sys; sys.exit(3)") as engine, self.assertRaisesRegex(engines.EngineError, "exit code 3"):
            engine.ask("round")

    def test_seconds_come_from_rates(self):
        answer = {"results": [{"test": "pp512", "tokens": 512, "tokens_per_second": 256.0}]}
        self.assertEqual(engines.seconds_by_test(answer), {"pp512": 2.0})
        answer = {"results": [{"test": "tg32x16", "tokens": 32, "sequences": 16, "tokens_per_second": 256.0}]}
        self.assertEqual(engines.seconds_by_test(answer), {"tg32x16": 2.0})


class Options(unittest.TestCase):
    def test_the_sweep_names_tests_as_quench_does(self):
        measured = sweep.Sweep((512, 0), (32,), (0, 4096), 2)
        self.assertEqual(measured.tests(0), [sweep.Test("pp512", "pp", 512, 1), sweep.Test("tg32", "tg", 32, 1)])
        self.assertEqual([test.name for test in measured.tests(4096)], ["pp512@d4096", "tg32@d4096"])
        self.assertEqual(measured.arguments(), ["-p", "512,0", "-n", "32", "-d", "0,4096", "-s", "1", "-t", "2"])

    def test_sequences_side_by_side_are_tests_of_their_own(self):
        measured = sweep.Sweep((0,), (32,), (0, 64), 2, sequences=(1, 16))
        self.assertEqual([test.name for depth in (0, 64) for test in measured.tests(depth)],
                         ["tg32", "tg32x16", "tg32@d64", "tg32x16@d64"])
        self.assertEqual(measured.tests(0)[1].all_tokens, 512)

    def test_synthetic_models_are_made_unless_files_are_given(self):
        self.assertEqual(compare.parse([]).formats, ["q8_0", "q4_K_M"])
        self.assertEqual(compare.parse(["model.gguf"]).formats, [])
        self.assertEqual(compare.parse(["--formats", "f16,q4_0"]).formats, ["f16", "q4_0"])
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            compare.parse(["--pairs", "0"])

    def test_the_format_is_read_from_the_file_s_name(self):
        self.assertEqual(compare.weights_of("SmolLM2-135M-Instruct.Q4_1.gguf"), "q4_1")
        self.assertEqual(compare.weights_of("qwen3-0.6b-q4_K_M.gguf"), "q4_k_m")


if __name__ == "__main__":
    unittest.main()
