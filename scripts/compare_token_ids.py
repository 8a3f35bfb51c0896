#!/usr/bin/env python3
"""Compares token ids, and tokens per second, with llama.cpp's over whole texts.

    python3 scripts/compare_token_ids.py --quench build/release/quench --text corpus.txt VOCAB.gguf ...

Runs `quench tokenize VOCAB TEXT --time` and llama_tokenize of the llama_cpp module (PyPI llama-cpp-python; without it only ours is
shown), with special tokens recognised and not. llama.cpp's time is that of the C call alone, on one thread; ours is what `--time` prints on
standard error, `encode: S s, N tokens`. Exits 1 where ids differ.

--drop 0b,1e leaves bytes out of the texts: falcon's vocabulary has no token for some control characters; quench then warns and leaves it out, and
llama.cpp loses the byte.
"""

import argparse
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

try:
    import llama_cpp
except ImportError:
    llama_cpp = None

SILENT = llama_cpp.llama_log_callback(lambda *_: None) if llama_cpp else None
# Its regular expressions recurse once or more per character: runs of 100,000 need a large stack.
STACK_BYTES = 1 << 30


class LlamaVocab:
    def __init__(self, path):
        llama_cpp.llama_log_set(SILENT, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)

    def tokenize(self, text, specials):
        """(ids, seconds)"""
        buffer = (llama_cpp.llama_token * (len(text) + 16))()
        start = time.perf_counter()
        count = llama_cpp.llama_tokenize(self.vocab, text, len(text), buffer, len(buffer), False, specials)
        return list(buffer[:count]), time.perf_counter() - start

    def piece(self, token):
        buffer = ctypes.create_string_buffer(512)
        return buffer.raw[: max(0, llama_cpp.llama_token_to_piece(self.vocab, token, buffer, 512, 0, True))]


def with_large_stack(function):
    result = []

    def run():
        try:
            result.append(function())
        except Exception as error:  # noqa: BLE001: handed to the caller
            result.append(error)

    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


def quench_tokenize(program, vocab, text_path, specials):
    command = [program, "tokenize", str(vocab), str(text_path), "--time"] + ([] if specials else ["--no-special"])
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} exits {run.returncode}: {run.stderr.strip()}")
    timing = re.search(r"encode: ([0-9.e+-]+) s", run.stderr)
    return [int(line) for line in run.stdout.split()], float(timing.group(1)) if timing else None


def first_difference(ours, theirs):
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            return i
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


def describe_difference(llama, ours, theirs, at):
    def pieces(ids):
        return " ".join(f"{token}:{llama.piece(token)!r}" for token in ids)

    begin = max(0, at - 3)
    return f"    token {at}, after {pieces(theirs[begin:at])}\n      ours   {pieces(ours[at:at + 6])}\n      theirs {pieces(theirs[at:at + 6])}"


def rate(tokens, seconds):
    return f"{tokens / seconds / 1e6:8.2f}" if seconds else "       -"


def compare(options, vocab, text_path, specials):
    llama = LlamaVocab(vocab) if llama_cpp else None
    text = text_path.read_bytes()
    our_runs, their_runs = [], []
    for _ in range(options.repeats):  # in turn: what else the machine does falls on both
        our_runs.append(quench_tokenize(options.quench, vocab, text_path, specials))
        if llama:
            their_runs.append(with_large_stack(lambda: llama.tokenize(text, specials)))
    ours, our_seconds = min(our_runs, key=lambda run: run[1] or 0.0)
    label = f"{vocab.stem:28} {text_path.name:16} {'special' if specials else 'text':8}"
    if not llama:
        print(f"{label} {len(ours):9} {rate(len(ours), our_seconds)}        -       -  (no llama_cpp)")
        return True
    theirs, their_seconds = min(their_runs, key=lambda run: run[1])
    at = first_difference(ours, theirs)
    ratio = f"{their_seconds / our_seconds:7.1f}" if our_seconds else "      -"
    print(f"{label} {len(theirs):9} {rate(len(ours), our_seconds)} {rate(len(theirs), their_seconds)} {ratio}  {'equal' if at is None else 'DIFFERENT'}")
    if at is not None:
        print(describe_difference(llama, ours, theirs, at))
    sys.stdout.flush()
    return at is None


def without_bytes(path, folder, hex_list):
    """The path of a copy of the text that lacks these bytes."""
    copy = pathlib.Path(folder) / path.name
    copy.write_bytes(path.read_bytes().translate(None, bytes(int(value, 16) for value in hex_list.split(","))))
    return copy


def compare_or_report(options, vocab, text_path, specials):
    try:
        return compare(options, vocab, text_path, specials)
    except RuntimeError as error:
        print(f"{vocab.stem:28} {text_path.name:16} {error}")
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quench", default="build/release/quench")
    parser.add_argument("--text", type=pathlib.Path, action="append", required=True, help="may be given several times")
    parser.add_argument("--repeats", type=int, default=1, help="the best of so many runs counts, for both")
    parser.add_argument("--drop", metavar="HEX,HEX")
    parser.add_argument("vocabs", type=pathlib.Path, nargs="+", metavar="VOCAB")
    options = parser.parse_args()
    for text in options.text:
        if text.stat().st_size == 0:
            sys.exit(f"{text} is empty: nothing to compare")
    print(f"{'vocabulary':28} {'text':16} {'mode':8} {'tokens':>9} {'Mtok/s':>8} {'llama':>8} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        texts = [without_bytes(text, folder, options.drop) for text in options.text] if options.drop else options.text
        results = [
            compare_or_report(options, vocab, text, specials) for vocab in options.vocabs for text in texts for specials in (True, False)
        ]
    print(f"{results.count(True)} of {len(results)} equal")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
