#!/usr/bin/env python3
"""llama.cpp as a process that measures on request: run by compare.py in a Python that has llama-cpp-python.

Prints a line of JSON that describes the build, then answers each line "round" with one repetition of every test, no sampling. With
--first-token IDS it loads, evaluates, takes the first maximum, prints the seconds and ends.
"""
import argparse
import ctypes
import json
import sys
import time

import llama_cpp as llama
import sweep

BATCH = 512  # llama.cpp's own default for the physical batch
Q8_0 = 8  # ggml's number of the type


@llama.llama_log_callback
def say_nothing(*_):
    pass


def kib_of_status(key: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))


def some_tokens(n: int, n_vocab: int) -> list[int]:
    return [(1000 + i * 7919) % (n_vocab - 10) for i in range(n)]


def load(path: str):
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    if not model:
        sys.exit(f"llama.cpp does not load {path}")
    return model


class Context:
    """A context whose sequences are all filled to one depth, which every test starts from."""

    def __init__(self, model, depth: int, most_tokens: int, threads: int, cache_type: str, sequences: int = 1):
        self.params = llama.llama_context_default_params()
        self.params.n_ctx = sequences * (depth + most_tokens + 64)
        self.params.n_seq_max = self.sequences = sequences
        self.params.n_batch = BATCH
        self.params.n_threads = self.params.n_threads_batch = threads
        if cache_type == "q8_0":
            self.params.type_k = self.params.type_v = Q8_0
            self.params.flash_attn_type = 1  # the only attention that reads a quantized V
        self.context = llama.llama_init_from_model(model, self.params)
        self.memory = llama.llama_get_memory(self.context)
        n_vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
        self.n_vocab = n_vocab
        self.tokens = some_tokens(depth + most_tokens, n_vocab)
        self.depth = depth

    def fill(self) -> None:
        """Touches weights and code once, then evaluates the tokens before the tests."""
        self.evaluate(self.tokens[:min(16, len(self.tokens))])
        llama.llama_memory_clear(self.memory, True)
        self.evaluate(self.tokens[:self.depth])
        for sequence in range(1, self.sequences):
            llama.llama_memory_seq_cp(self.memory, 0, sequence, -1, -1)

    def evaluate(self, tokens: list[int]) -> None:
        for begin in range(0, len(tokens), BATCH):
            part = tokens[begin:begin + BATCH]
            array = (llama.llama_token * len(part))(*part)
            self.decode(llama.llama_batch_get_one(array, len(part)))
        llama.llama_synchronize(self.context)

    def decode(self, batch) -> None:
        if llama.llama_decode(self.context, batch) != 0:
            sys.exit("llama.cpp: decode failed")

    def measure(self, test: sweep.Test) -> float:
        tokens = self.tokens[self.depth:self.depth + test.tokens]
        start = time.perf_counter()
        if test.kind == "pp":
            self.evaluate(tokens)
        elif test.sequences == 1:
            for token in tokens:
                self.evaluate([token])
        else:
            self.generate_side_by_side(tokens)
        seconds = time.perf_counter() - start
        for sequence in range(self.sequences):
            llama.llama_memory_seq_rm(self.memory, sequence, self.depth, -1)
        return seconds

    def generate_side_by_side(self, tokens: list[int]) -> None:
        """Each step is one batch of one token for each sequence, all of whose logits are wanted."""
        batch = llama.llama_batch_init(self.sequences, 0, 1)
        batch.n_tokens = self.sequences
        for position, token in enumerate(tokens, self.depth):
            for sequence in range(self.sequences):
                batch.token[sequence] = token
                batch.pos[sequence] = position
                batch.n_seq_id[sequence] = 1
                batch.seq_id[sequence][0] = sequence
                batch.logits[sequence] = True
            self.decode(batch)
            llama.llama_synchronize(self.context)
        llama.llama_batch_free(batch)

    def best_token(self) -> int:
        logits = llama.llama_get_logits_ith(self.context, -1)
        return max(range(self.n_vocab), key=lambda token: logits[token])


def first_token(arguments) -> None:
    ids = [int(word) for word in arguments.first_token.split()]
    start = time.perf_counter()
    context = Context(load(arguments.model), 0, len(ids), arguments.t, arguments.cache_type)
    context.evaluate(ids)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "token": context.best_token()}))  # the search is Python's: not counted


def describe(context: Context) -> dict:
    params = context.params
    return {"name": "llama.cpp",
            "version": llama.__version__,
            "flags": f"n_batch {params.n_batch}, n_ubatch {params.n_ubatch}, flash_attn {params.flash_attn_type}, "
                     f"type_k {params.type_k}, type_v {params.type_v}, threads {params.n_threads}",
            "system": llama.llama_print_system_info().decode().strip()}


def serve(arguments) -> None:
    measured = sweep.sweep_of(arguments)
    resident_before = kib_of_status("VmRSS") * 1024
    model = load(arguments.model)
    most = max(measured.prompt + measured.generate)
    contexts = {}
    for depth in measured.depths:
        for sequences in {test.sequences for test in measured.tests(depth)}:
            contexts[depth, sequences] = Context(model, depth, most, measured.threads, measured.cache_type, sequences)
    for context in contexts.values():
        context.fill()
    print(json.dumps(describe(next(iter(contexts.values())))), flush=True)
    for line in sys.stdin:
        if line.strip() != "round":
            sys.exit(f"unknown request: {line.strip()}")
        results = []
        for depth in measured.depths:
            for test in measured.tests(depth):
                seconds = contexts[depth, test.sequences].measure(test)
                results.append({"test": test.name, "tokens": test.tokens, "sequences": test.sequences,
                                "tokens_per_second": test.all_tokens / seconds})
        resident = kib_of_status("VmHWM") * 1024 - resident_before
        print(json.dumps({"results": results, "peak_resident_bytes": resident}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    sweep.add_arguments(parser)
    parser.add_argument("--first-token", metavar="IDS")
    arguments = parser.parse_args()
    llama.llama_log_set(say_nothing, ctypes.c_void_p(0))
    llama.llama_backend_init()
    if arguments.first_token:
        first_token(arguments)
    else:
        serve(arguments)


if __name__ == "__main__":
    main()
