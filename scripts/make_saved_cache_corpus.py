"""Writes tests/corpus/saved_cache/: records of saved caches (engine/saved_cache.cpp) from which saved_cache_fuzz starts, good and bad. The fuzzer
is built without checksums, so these hold zeros in their place.

usage: make_saved_cache_corpus.py
"""

import pathlib
import struct

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/corpus/saved_cache"
PAGE_BYTES = 512  # of either group in the fuzzer's layout: 64 positions, keys and values of 2 numbers of 2 bytes
TOP = 2**64 - 1
MAGIC = 0x65676170


def record(node, tokens, parent=TOP, groups=3, adapter=0, magic=MAGIC, n_tokens=None, pages=True):
    count = len(tokens) if n_tokens is None else n_tokens
    padded = (list(tokens) + [0] * 64)[:64]
    head = struct.pack("<IIQQQQ64IQ", magic, count, adapter, node, parent, groups, *padded, 0)
    body = b"".join(bytes(PAGE_BYTES) + bytes(8) for group in range(2) if groups >> group & 1) if pages else b""
    return head + body


def full(first):
    return [(first + i) % 256 for i in range(64)]


def files():
    top = record(0, full(0))
    yield top
    yield top + record(1, full(1), parent=0)
    yield top + record(1, full(1), parent=0) + record(2, [5, 6], parent=1)
    yield top + record(1, [1, 2], parent=0) + record(2, [1, 3], parent=0)
    yield top + record(1, full(9)) + record(2, full(9), adapter=3)
    yield record(0, [1, 2]) + record(0, [1, 2, 3])
    yield record(0, [1, 2]) + record(0, full(1))
    yield record(0, full(0), groups=1) + record(0, full(0), groups=2)
    yield record(0, full(0), groups=2)
    yield b"".join(record(i, full(i), parent=i - 1 if i else TOP, groups=1 if i < 6 else 3) for i in range(10))
    yield b"".join(record(i, full(0), parent=i - 1 if i else TOP) for i in range(30))
    yield record(0, [1, 2]) + record(0, [1, 3, 4])
    yield record(0, [1, 2]) + record(1, [3], parent=0)
    yield top + record(5, full(1))
    yield top + record(1, full(1), parent=1)
    yield top + record(1, full(1), parent=7)
    yield top + record(1, full(1), parent=0, adapter=1)
    yield record(0, full(0), groups=0)
    yield record(0, full(0), groups=4)
    yield record(0, full(0), groups=2**64 - 1, pages=False)
    yield record(0, [], groups=1)
    yield record(0, full(0), n_tokens=65)
    yield record(0, full(0), n_tokens=2**32 - 1)
    yield record(0, [256])
    yield record(0, full(0), magic=0)
    yield top[:-1]
    yield top[:200]
    yield top + top[:304]
    yield top + top


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    seeds = [b"\0" + data for data in files()]
    seeds += [b"\1" + data for data in (b"", b"quench", b"quenchKV" + bytes(56), b"quenchKV" + struct.pack("<II", 1, 1) + bytes(48), bytes(64))]
    for number, data in enumerate(seeds):
        (OUT / f"{number:03d}").write_bytes(data)


main()
