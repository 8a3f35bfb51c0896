#!/usr/bin/env python3
"""Greedy text of 64 tokens on 20 chat prompts: quench against llama.cpp, the same ids in.

usage: greedy_compare.py SMOLLM2.gguf [--quench build/release/quench] [--self]

--self compares llama.cpp with itself instead, flash attention on and off: how much of a difference is the noise of 8-bit activations.

Needs a Python with llama-cpp-python 0.3.36. Prints a line per prompt: equal, or where the two part and by which margin (llama.cpp's
logits, best minus second). Exits 1 when more than 3 part, or one parts at a margin of 0.15 or more.
"""
import argparse
import ctypes
import pathlib
import subprocess
import sys

import llama_cpp as api
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = 64
MOST_PARTED = 3
NEAR_TIE = 0.15
PROMPTS = [
    "What is the capital of France?", "Explain photosynthesis in two sentences.", "Write a haiku about the sea.",
    "How do I boil an egg?", "What is 17 times 23?", "Name three planets of the solar system.", "Who wrote Hamlet?",
    "Give me a recipe for pancakes.", "Translate 'good morning' into Spanish.", "What is a prime number?",
    "Describe a sunset in one paragraph.", "What does a compiler do?", "List the days of the week.", "Why is the sky blue?",
    "Write a Python function that reverses a string.", "What is the difference between a crocodile and an alligator?",
    "Tell me a short story about a fox.", "How many legs does a spider have?", "What should I pack for a hiking trip?",
    "Summarize the plot of Romeo and Juliet.",
]


def prompt_ids(program, model, message):
    text = f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"
    out = subprocess.run([program, "tokenize", model, "-"], input=text.encode(), check=True, capture_output=True).stdout
    return [int(i) for i in out.split()]


def quench_ids(program, model, ids):
    command = [program, "run", model, "--ids", " ".join(map(str, ids)), "-n", str(TOKENS), "--temp", "0", "--print-ids", "-t", "1"]
    return [int(i) for i in subprocess.run(command, check=True, capture_output=True).stdout.split()]


class Peer:
    def __init__(self, path, flash_attention=None):
        self.quiet = api.llama_log_callback(lambda *_: None)  # the library keeps no reference of its own
        api.llama_log_set(self.quiet, ctypes.c_void_p(0))
        api.llama_backend_init()
        self.model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
        self.vocab = api.llama_model_get_vocab(self.model)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_threads, params.n_threads_batch = 1024, 512, 1, 1
        if flash_attention is not None:
            params.flash_attn_type = int(flash_attention)
        self.context = api.llama_init_from_model(self.model, params)

    def greedy(self, ids):
        """Generated ids and the margin of each."""
        api.llama_memory_clear(api.llama_get_memory(self.context), True)
        step, out, margins = list(ids), [], []
        while len(out) < TOKENS:
            batch = (api.llama_token * len(step))(*step)
            assert api.llama_decode(self.context, api.llama_batch_get_one(batch, len(step))) == 0
            logits = np.ctypeslib.as_array(api.llama_get_logits_ith(self.context, -1), shape=(api.llama_vocab_n_tokens(self.vocab),))
            second, best = np.argsort(logits, kind="stable")[-2:]
            margins.append(float(logits[best] - logits[second]))
            if api.llama_vocab_is_eog(self.vocab, int(best)):
                break
            out.append(int(best))
            step = [int(best)]
        return out, margins


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--quench", default="build/release/quench")
    parser.add_argument("--self", dest="compare_self", action="store_true")
    options = parser.parse_args()
    program, peer = str(ROOT / options.quench), Peer(options.model)
    other = Peer(options.model, flash_attention=False) if options.compare_self else None
    parted, wide = 0, 0
    print("| prompt | result |\n|---|---|")
    for message in PROMPTS:
        ids = prompt_ids(program, options.model, message)
        ours = other.greedy(ids)[0] if other else quench_ids(program, options.model, ids)
        theirs, margins = peer.greedy(ids)
        if ours == theirs:
            result = f"equal, {len(ours)} tokens"
        else:
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            parted += 1
            wide += margins[at] >= NEAR_TIE
            result = f"parts at token {at}, margin {margins[at]:.4f}"
        print(f"| {message} | {result} |", flush=True)
    print(f"\n{len(PROMPTS) - parted} of {len(PROMPTS)} equal")
    sys.exit(1 if parted > MOST_PARTED or wide else 0)


if __name__ == "__main__":
    main()
