#!/usr/bin/env python3
"""quench against another engine, in turn on the same files; docs/benchmarking.md says how and why.

Prints Markdown tables. Exits 1 when a cell that has a target misses it, when a run is invalid, or when too few pairs are left.
"""
import argparse
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import engines
import paired
import report
import sweep
import targets
from peer_python import ROOT, peer_python

FIRST_TOKEN_IDS = [(1000 + i * 7919) % 30000 for i in range(32)]
# A round without a pair: both sides have touched every page that the measurements use.
WARM_UP_ROUNDS = 1


class TooFewPairs(Exception):
    """The machine was too busy for too long."""


def machine() -> targets.Machine:
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    flags = fields.get("flags", "").split()
    return targets.Machine(name=fields.get("model name", "unknown processor"), intel="Intel" in fields.get("vendor_id", ""),
                           amx="amx_int8" in flags)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure_pair(ours: engines.Quench, peer: engines.Peer, rooflines: list[dict]) -> tuple[paired.Pair, dict]:
    """The pair, and quench's whole answer."""
    before = ours.probe()
    our_answer = ours.ask("round")
    peer_answer = peer.ask("round")
    after = ours.probe()
    rooflines += [before, after, our_answer["results"][0]["roofline"]]
    pair = paired.Pair(ours=engines.seconds_by_test(our_answer), peer=engines.seconds_by_test(peer_answer),
                       probe=min(before["bytes_per_second"], after["bytes_per_second"]))
    return pair, our_answer


def measure_pairs(ours: engines.Quench, peer: engines.Peer, wanted: int) -> tuple[list[paired.Pair], dict, dict]:
    """The pairs that count, the best roofline of the run, and quench's last answer."""
    for _ in range(WARM_UP_ROUNDS):
        ours.ask("round")
        peer.ask("round")
    pairs: list[paired.Pair] = []
    rooflines: list[dict] = []
    for _ in range(2 * wanted):
        pair, answer = measure_pair(ours, peer, rooflines)
        pairs.append(pair)
        left = paired.kept(pairs)
        say(f"  pair {len(pairs)}: probe {pair.probe / 1e9:.1f} GB/s, {len(left)} of {wanted} kept; " +
            ", ".join(f"{test} {pair.peer[test] / seconds:.2f}" for test, seconds in pair.ours.items() if test in pair.peer))
        if len(left) >= wanted:
            best = {key: max(one[key] for one in rooflines) for key in rooflines[0]}
            return left, best, answer
    raise TooFewPairs(f"only {len(paired.kept(pairs))} of {len(pairs)} pairs had a probe of {paired.PROBE_FLOOR:.0%} of the best")


def speed_cells(pairs, roofline: dict, answer: dict, weights: str, options) -> list[report.Cell]:
    rows = {row["test"]: row for row in answer["results"]}
    cells = []
    for found in paired.compare(pairs):
        row = rows[found.test]
        ours, peer = statistics.median(found.ours), statistics.median(found.peer)
        reads = row["bytes"] / ours / roofline["bytes_per_second"] if roofline["bytes_per_second"] else None
        operations = None
        if roofline["int8_per_second"] and roofline["f32_per_second"]:
            at_full_rate = row["int8_operations"] / roofline["int8_per_second"] + row["f32_operations"] / roofline["f32_per_second"]
            operations = at_full_rate / ours
        decoding = found.test.startswith("tg")
        batched = decoding and row.get("sequences", 1) > 1
        bounds = [reads, operations] if batched else [reads] if decoding else [operations]
        own_share = max((share for share in bounds if share is not None), default=None)
        cells.append(report.Cell(
            test=found.test, ours=engines.all_tokens(row) / ours, peer=engines.all_tokens(row) / peer, unit="tok/s", ratios=found.ratios,
            lower_bound=found.lower_bound, target=targets.target_of(found.test, weights, options.cache_type, machine(), options.peer),
            own_share=own_share, read_share=reads if decoding and not batched else None,
            peer_share=reads * ours / peer if decoding and reads else None))
    return cells


def first_token_cell(model, python: str, options) -> report.Cell:
    ours, peer = [], []
    for _ in range(options.pairs):
        ours.append(engines.quench_first_token(options.quench, model, FIRST_TOKEN_IDS, options.t))
        peer.append(engines.peer_first_token(options.peer, python, model, FIRST_TOKEN_IDS, options.t))
    ratios = [theirs / own for own, theirs in zip(ours, peer, strict=True)]
    return report.Cell(test="first token", ours=statistics.median(ours), peer=statistics.median(peer), unit="s", ratios=ratios,
                       lower_bound=paired.lower_bound_of_median(ratios), target=targets.target_of("first token", "", "", machine()))


def resident_cell(model: pathlib.Path, python: str, options) -> report.Cell:
    """Fresh processes at depth 0: what a run of pp512 and tg32 takes at its peak. Judged against the file's size, not the peer."""
    short = sweep.Sweep(options.p, options.n, (0,), options.t, options.cache_type)
    with engines.Quench(options.quench, model, short, probe=False) as ours:
        answer = ours.ask("round")
    with engines.Peer(options.peer, python, model, short) as peer:
        peer_bytes = peer.ask("round")["peak_resident_bytes"]
    limit = targets.resident_limit_bytes(model.stat().st_size, answer["cache_bytes"])
    mib = 1 << 20
    ratio = peer_bytes / answer["peak_resident_bytes"]
    return report.Cell(test="resident", ours=answer["peak_resident_bytes"] / mib, peer=peer_bytes / mib, unit="MiB", ratios=[ratio],
                       lower_bound=ratio, target=targets.Target(), limit=limit / mib)


def compare_model(model: pathlib.Path, weights: str, python: str, options) -> bool:
    say(f"{model.name} ({weights})")
    measured = sweep.sweep_of(options)
    with engines.Quench(options.quench, model, measured) as ours, engines.Peer(options.peer, python, model, measured) as peer:
        pairs, roofline, answer = measure_pairs(ours, peer, options.pairs)
        description = peer.description
    cells = speed_cells(pairs, roofline, answer, weights, options)
    invalid = [cell.test for cell in cells if cell.own_share is not None and cell.own_share > 1]
    if options.peer == "llama" and not options.speed_only:
        cells += [first_token_cell(model, python, options), resident_cell(model, python, options)]

    print(f"\n**{model.name}**, {weights}, {options.cache_type} cache, {options.t} threads, {len(pairs)} pairs. "
          f"quench: {answer['isa']} on {answer['processor']}. "
          f"{description['name']} {description['version']}: {description['flags']}; {description['system']}. "
          f"Roofline: {roofline['bytes_per_second'] / 1e9:.1f} GB/s, {roofline['int8_per_second'] / 1e9:.0f} GOP/s int8, "
          f"{roofline['f32_per_second'] / 1e9:.0f} GOP/s f32.\n")
    print(report.table(cells), flush=True)
    for test in invalid:
        say(f"invalid run: {test} is above its own roofline")
    missed = [cell.test for cell in cells if not cell.passed]
    if missed:
        say(f"missed: {', '.join(missed)}")
    return not invalid and not missed


def weights_of(file_name: str) -> str:
    """The format that a file's name ends with: model-q4_K_M.gguf."""
    return file_name.removesuffix(".gguf").replace(".", "-").split("-")[-1].lower()


def models(options, folder: pathlib.Path):
    """(path, format) of each model to measure; synthetic ones are written when their turn comes, and deleted after it."""
    for path in options.models:
        yield path, weights_of(path.name)
    for weights in options.formats:
        path = folder / f"{options.family}-{options.size}-{weights}.gguf"
        command = [options.quench, "synth", path, "--family", options.family, "--size", options.size, "--format", weights]
        subprocess.run(command + (["--vocab", options.vocab] if options.vocab else []), check=True)
        yield path, weights.lower()
        path.unlink()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL", help="GGUF files besides the synthetic ones")
    parser.add_argument("--formats", type=lambda text: [word for word in text.split(",") if word], metavar="NAME,..",
                        help="synthetic models to make; default q8_0,q4_K_M, or none when files are given")
    parser.add_argument("--family", default="qwen3", help="of the synthetic models")
    parser.add_argument("--size", default="0.6b", help="of the synthetic models")
    parser.add_argument("--vocab", type=pathlib.Path, help="GGUF file whose tokenizer the synthetic models get; default: a generated one")
    parser.add_argument("--pairs", type=int, default=9, help="pairs that must be left")
    sweep.add_arguments(parser)
    parser.add_argument("--speed-only", action="store_true", help="neither resident memory nor the time to the first token")
    parser.add_argument("--peer", choices=("llama", "openvino"), default="llama")
    parser.add_argument("--llama-python", help="Python that has llama-cpp-python (or QUENCH_LLAMA_PYTHON); default: one is built")
    parser.add_argument("--openvino-python", help="Python that has openvino-genai (or QUENCH_OPENVINO_PYTHON); default: one is made")
    parser.add_argument("--quench", type=pathlib.Path, default=ROOT / "build" / "release" / "quench", help="the program")
    options = parser.parse_args(arguments)
    if options.formats is None:
        options.formats = [] if options.models else ["q8_0", "q4_K_M"]
    if options.peer == "openvino" and options.cache_type != "f16":
        parser.error("OpenVINO GenAI chooses the type of its cache itself")
    if options.pairs < 1:
        parser.error("--pairs is at least 1")
    return options


def main() -> None:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # models and engines are cleaned up
    python = peer_python(options.peer, getattr(options, f"{options.peer}_python"))
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for path, weights in models(options, pathlib.Path(folder)):
            try:
                good &= compare_model(path, weights, python, options)
            except (engines.EngineError, TooFewPairs) as problem:
                say(f"{path.name}: {problem}")
                good = False
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
