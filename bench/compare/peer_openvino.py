#!/usr/bin/env python3
"""OpenVINO GenAI as a process that measures on request, as peer_llama.py: run by compare.py in a Python that has openvino-genai.

It measures at depth 0 only. Prompts are random ids, new ones each time: it keeps prefixes that it has seen.
"""
import argparse
import json
import random
import sys

import numpy as np
import openvino
import openvino_genai
import sweep

MILLISECOND = 1e-3


class Pipeline:
    def __init__(self, path: str, threads: int):
        self.pipeline = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=threads)
        self.random = random.Random(1)

    def generate(self, n_prompt: int, n_new: int):
        ids = np.array([[self.random.randrange(1000, 30000) for _ in range(n_prompt)]], dtype=np.int64)
        config = openvino_genai.GenerationConfig(max_new_tokens=n_new, ignore_eos=True, do_sample=False)
        return self.pipeline.generate(openvino.Tensor(ids), config).perf_metrics

    def measure(self, kind: str, n: int) -> float:
        """Seconds for a prompt of n tokens, or for n tokens after a short one."""
        if kind == "pp":
            return self.generate(n, 1).get_ttft().mean * MILLISECOND
        return self.generate(16, n + 1).get_tpot().mean * MILLISECOND * n


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    sweep.add_arguments(parser)
    arguments = parser.parse_args()
    measured = sweep.sweep_of(arguments)
    pipeline = Pipeline(arguments.model, measured.threads)
    pipeline.generate(64, 4)
    print(json.dumps({"name": "OpenVINO GenAI", "version": openvino_genai.__version__, "flags": f"CPU, threads {measured.threads}, KV cache as it chooses",
                      "system": openvino.Core().get_property("CPU", "FULL_DEVICE_NAME")}), flush=True)
    for line in sys.stdin:
        if line.strip() != "round":
            sys.exit(f"unknown request: {line.strip()}")
        results = [{"test": test.name, "tokens": test.tokens, "tokens_per_second": test.tokens / pipeline.measure(test.kind, test.tokens)}
                   for test in measured.tests(0) if test.sequences == 1]
        print(json.dumps({"results": results}), flush=True)


if __name__ == "__main__":
    main()
