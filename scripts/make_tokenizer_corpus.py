"""Writes tests/corpus/tokenizer/: inputs from which tokenizer_fuzz starts (see fuzz/tokenizer_fuzz.cpp for their form).

usage: make_tokenizer_corpus.py
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXTS = ROOT / "tests/golden/tokenizer"
OUT = ROOT / "tests/corpus/tokenizer"

STRINGS, INTEGERS, FLOATS, NUMBER, FLAG, TEXT = 4, 5, 6, 0, 2, 3
KEYS = ["model", "pre", "tokens", "token_type", "scores", "merges", "bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id",
        "add_bos_token", "add_eos_token", "add_space_prefix", "fim_pad_token_id", "eom_token_id"]


def text_of(text):
    return bytes([len(text)]) + text


def field(key, kind, count, payload):
    return bytes([KEYS.index(key), kind, count]) + payload


def strings(key, texts):
    return field(key, STRINGS, len(texts), b"".join(map(text_of, texts)))


def metadata_inputs():
    tokens = [b"a", b"b", b"ab", b"<|x|>", b"<0x61>", b"</s>"]
    whole = strings("tokens", tokens) + strings("merges", [b"a b"])
    types = field("token_type", INTEGERS, 6, bytes([2, 2, 2, 4, 7, 4]))
    scores = field("scores", FLOATS, 6, bytes(12))
    for model in range(3):
        head = bytes([3, model, 0]) + text_of(b"ab<|x|>")
        yield head + whole
        yield head + whole + types
        yield head + whole + types + scores
        yield head + whole + field("bos_token_id", NUMBER, 0, b"\x03") + field("add_bos_token", FLAG, 0, b"\x00")
        yield head + whole + field("eos_token_id", NUMBER, 0, b"\x05") + field("add_eos_token", FLAG, 0, b"\x00")
        yield head + whole + field("unknown_token_id", NUMBER, 0, b"\xff")
        yield head + strings("tokens", tokens) + strings("merges", [b"ab"])
        yield head + whole + field("token_type", INTEGERS, 5, bytes(5))


def text_inputs():
    number = 0
    for path in sorted(TEXTS.glob("*.txt")):
        for line in path.read_bytes().splitlines(keepends=True):
            yield bytes([number % 3, number * 7 % 256, number % 3]) + line
            number += 1
    for path in sorted(TEXTS.glob("*.txt")):
        for kind in range(3):
            yield bytes([kind, number % 256, kind]) + path.read_bytes()
            number += 1


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate([*text_inputs(), *metadata_inputs()]):
        (OUT / f"{number:03d}").write_bytes(data)


main()
