#!/usr/bin/env python3
"""Makes tests/corpus/gguf: small GGUF files that the reader must accept (good/) or refuse (bad/), and manifest.tsv, which says how.

usage: make_gguf_corpus.py [FOLDER]

The bytes are packed here by hand, so that nothing of the reader or writer under test decides what is right. Needs Python 3 only; the
same files come out each time.
"""
import struct
import sys
from pathlib import Path

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}
T_F32, T_F16, T_Q4_0, T_Q8_0, T_Q4_K, T_BF16 = 0, 1, 2, 8, 12, 30
BLOCK = {T_F32: (1, 4), T_F16: (1, 2), T_Q4_0: (32, 18), T_Q8_0: (32, 34), T_Q4_K: (256, 144), T_BF16: (1, 2)}


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def payload(kind, value):
    if kind == STR:
        return text(value)
    if kind == ARR:
        element, items = value
        return struct.pack("<IQ", element, len(items)) + b"".join(payload(element, item) for item in items)
    return struct.pack(PACK[kind], value)


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + payload(kind, value)


def raw_entry(key, kind, raw):
    return text(key) + struct.pack("<I", kind) + raw


def size_of(kind, dims):
    elements, size = BLOCK[kind]
    total = dims[0] // elements * size
    for dim in dims[1:]:
        total *= dim
    return total


def tensor(name, kind, dims, offset):
    return text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)


def header(n_tensors, n_entries, version=3, magic=b"GGUF"):
    return magic + struct.pack("<IQQ", version, n_tensors, n_entries)


def pad(raw, alignment):
    return raw + b"\0" * (-len(raw) % alignment)


def gguf(entries=(), tensors=(), version=3, alignment=32, pad_end=True, gap=0, order=None):
    """A whole file. tensors: (name, kind, dims). order: data order, by index; the list stays as given."""
    offsets, offset = {}, 0
    sequence = order or range(len(tensors))
    for i in sequence:
        offsets[i] = offset
        offset += size_of(tensors[i][1], tensors[i][2]) + gap
        offset += -offset % alignment
    infos = [tensor(n, k, d, offsets[i]) for i, (n, k, d) in enumerate(tensors)]
    raw = header(len(tensors), len(entries), version) + b"".join(entries) + b"".join(infos)
    if tensors or pad_end:
        raw = pad(raw, alignment)
    for position, i in enumerate(sequence):
        raw += bytes((7 * i + j) % 251 for j in range(size_of(tensors[i][1], tensors[i][2])))
        if position + 1 < len(tensors):
            raw += b"\0" * gap
        if pad_end or position + 1 < len(tensors):
            raw = pad(raw, alignment)
    return raw


ARCH = entry("general.architecture", STR, "qwen3")
SMALL = ("a.weight", T_F32, (8,))
SECOND = ("b.weight", T_F32, (4, 2))


def align_key(value, kind=U32):
    return entry("general.alignment", kind, value)


def split(no, count, total, *more):
    return [entry("split.no", U16, no), entry("split.count", U16, count), entry("split.tensors.count", I32, total), *more]


def every_type():
    scalars = [(U8, 200), (I8, -100), (U16, 60000), (I16, -30000), (U32, 4000000000), (I32, -2000000000), (F32, 1.5), (BOOL, 1),
               (STR, "text"), (U64, 2**63 + 1), (I64, -(2**62)), (F64, 0.1)]
    entries = [entry(f"scalar.{kind}", kind, value) for kind, value in scalars]
    entries += [entry(f"array.{kind}", ARR, (kind, [value, value])) for kind, value in scalars]
    entries += [entry(f"empty.{kind}", ARR, (kind, [])) for kind, _ in scalars]
    return entries


def good():
    yield "empty", gguf()
    yield "empty_unpadded", gguf(pad_end=False)
    yield "version2", gguf([ARCH], [SMALL], version=2)
    yield "version3", gguf([ARCH], [SMALL])
    yield "metadata_only", gguf([ARCH, entry("tokenizer.ggml.model", STR, "gpt2")])
    yield "metadata_only_unpadded", gguf([ARCH], pad_end=False)
    yield "every_value_type", gguf(every_type())
    yield "empty_string", gguf([entry("general.name", STR, "")])
    yield "string_with_zero_byte", gguf([entry("general.name", STR, b"a\0b")])
    yield "string_not_utf8", gguf([entry("general.name", STR, b"\xff\xfe\x80")])
    yield "tokens", gguf([ARCH, entry("tokenizer.ggml.tokens", ARR, (STR, ["<s>", "a", "", "\u0120the"])),
                          entry("tokenizer.ggml.scores", ARR, (F32, [0.0, -1.0, -2.0, -3.0])),
                          entry("tokenizer.ggml.token_type", ARR, (I32, [3, 1, 1, 1]))])
    yield "bools", gguf([entry("flags", ARR, (BOOL, [1, 0, 1, 1]))])
    yield "one_dimension", gguf([ARCH], [("a", T_F32, (5,))])
    yield "two_dimensions", gguf([ARCH], [("a", T_F32, (5, 3))])
    yield "three_dimensions", gguf([ARCH], [("a", T_F16, (5, 3, 2))])
    yield "four_dimensions", gguf([ARCH], [("a", T_BF16, (5, 3, 2, 2))])
    yield "unpadded_end", gguf([ARCH], [SMALL, ("c", T_F32, (3,))], pad_end=False)
    yield "quantized", gguf([ARCH], [("q8", T_Q8_0, (64, 2)), ("q4", T_Q4_0, (32, 3)), ("k", T_Q4_K, (256,))])
    yield "data_in_another_order", gguf([ARCH], [SMALL, SECOND], order=[1, 0])
    yield "gap_between_tensors", gguf([ARCH], [SMALL, SECOND], gap=100)
    yield "bytes_after_the_end", gguf([ARCH], [SMALL]) + b"more" * 9
    yield "alignment_1", gguf([ARCH, align_key(1)], [("a", T_F32, (3,)), ("b", T_F16, (3,))], alignment=1)
    yield "alignment_8", gguf([ARCH, align_key(8)], [("a", T_F32, (3,)), ("b", T_F16, (3,))], alignment=8)
    yield "alignment_1024", gguf([ARCH, align_key(1024)], [("a", T_F32, (3,)), ("b", T_F16, (3,))], alignment=1024)
    yield "alignment_largest", gguf([ARCH, align_key(1 << 20)], pad_end=False)
    yield "long_tensor_name", gguf([ARCH], [("n" * 64, T_F32, (1,))])
    yield "long_key", gguf([entry("k" * 3000, U8, 1)])
    yield "single_part-00001-of-00001", gguf([ARCH, *split(0, 1, 1)], [SMALL])
    yield "two_parts-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL])
    yield "two_parts-00002-of-00002", gguf(split(1, 2, 2), [SECOND])
    yield "first_without_tensors-00001-of-00003", gguf([ARCH, *split(0, 3, 2)])
    yield "first_without_tensors-00002-of-00003", gguf(split(1, 3, 2), [SMALL])
    yield "first_without_tensors-00003-of-00003", gguf(split(2, 3, 2), [SECOND])
    yield "aligned_parts-00001-of-00002", gguf([ARCH, align_key(64), *split(0, 2, 2)], [SMALL], alignment=64)
    yield "aligned_parts-00002-of-00002", gguf([align_key(64), *split(1, 2, 2)], [SECOND], alignment=64)
    yield "aligned_first_part-00001-of-00002", gguf([ARCH, align_key(64), *split(0, 2, 2)], [SMALL], alignment=64)
    yield "aligned_first_part-00002-of-00002", gguf(split(1, 2, 2), [SECOND])


def bad():
    """name, bytes, kind, fragment of the message; no kind: the file is only there for another one."""
    f, u = "bad_file", "unsupported"
    yield "no_bytes", b"", f, "truncated"
    yield "magic_only", b"GGUF", f, "truncated"
    yield "no_counts", b"GGUF" + struct.pack("<I", 3), f, "truncated"
    yield "other_magic", b"ABCD" + gguf()[4:], f, "does not start with the letters GGUF"
    yield "old_ggjt", b"tjgg" + b"\0" * 60, f, "old GGML file"
    yield "git_lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", f, "git lfs pull"
    yield "web_page", b"<!DOCTYPE html><html></html>", f, "HTML"
    yield "zip", b"PK\x03\x04" + b"\0" * 40, f, "zip archive"
    yield "version0", gguf(version=0), u, "GGUF version 0"
    yield "version1", b"GGUF" + struct.pack("<III", 1, 0, 0), u, "GGUF version 1"
    yield "version4", gguf(version=4), u, "GGUF version 4"
    yield "big_endian_3", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), u, "big-endian"
    yield "big_endian_2", b"GGUF" + struct.pack(">IQQ", 2, 0, 0), u, "big-endian"
    yield "tensor_count_huge", header(2**63, 0), f, "claims 9223372036854775808 tensors"
    yield "entry_count_huge", header(0, 2**64 - 1), f, "metadata entries"
    yield "tensor_count_false", header(1000, 0) + b"\0" * 100, f, "claims 1000 elements"
    yield "entry_count_false", header(0, 1000) + b"\0" * 100, f, "claims 1000 elements"
    yield "key_length_huge", header(0, 1) + struct.pack("<Q", 2**60) + b"x" * 40, f, "metadata entry 0: a string of"
    yield "key_length_past_end", header(0, 1) + struct.pack("<Q", 60) + b"x" * 40, f, "20 bytes short"
    yield "key_empty", gguf([entry("", U8, 1)]), f, "name is empty"
    yield "key_with_zero_byte", gguf([entry(b"a\0b", U8, 1)]), f, "zero byte"
    yield "key_twice", gguf([ARCH, ARCH]), f, "general.architecture: the key appears twice"
    yield "key_with_escape_sequence", gguf([raw_entry("k\x1b[31m", 13, b"\0" * 8)]), f, "metadata key k?[31m: unknown"
    yield "key_very_long", gguf([raw_entry("k" * 500, 13, b"\0" * 8)]), f, "k...: unknown value type"
    yield "value_type_13", gguf([raw_entry("k", 13, b"\0" * 8)]), f, "metadata key k: unknown value type 13"
    yield "value_missing", header(0, 1) + text("general.name_of_a_model") + struct.pack("<I", U64), f, "8 bytes short"
    yield "string_past_end", gguf([raw_entry("k", STR, struct.pack("<Q", 1000) + b"abc")], pad_end=False), f, "997 bytes short"
    yield "string_length_wraps", gguf([raw_entry("k", STR, struct.pack("<Q", 2**64 - 8) + b"abc")]), f, "a string of"
    yield "bool_2", gguf([raw_entry("flag", BOOL, b"\x02")]), f, "metadata key flag: a bool is 0 or 1, found 2"
    yield "bool_255_in_array", gguf([raw_entry("flags", ARR, struct.pack("<IQ", BOOL, 3) + b"\0\1\xff")]), f, "found 255"
    yield "array_of_arrays", gguf([raw_entry("k", ARR, struct.pack("<IQ", ARR, 0))]), u, "array of arrays"
    yield "array_type_99", gguf([raw_entry("k", ARR, struct.pack("<IQ", 99, 1) + b"\0" * 8)]), f, "unknown value type 99"
    yield "array_count_huge", gguf([raw_entry("k", ARR, struct.pack("<IQ", F64, 2**61))]), f, "claims 2305843009213693952 elements"
    yield "array_count_false", gguf([raw_entry("k", ARR, struct.pack("<IQ", U32, 100) + b"\0" * 40)]), f, "claims 100 elements"
    yield "strings_count_false", gguf([raw_entry("k", ARR, struct.pack("<IQ", STR, 100) + b"\0" * 40)]), f, "claims 100 elements"
    yield "string_in_array_past_end", gguf([raw_entry("k", ARR, struct.pack("<IQ", STR, 2) + text("ab") + struct.pack("<Q", 500))]), f, "short of this field"
    for value in (0, 3, 48, 1 << 21):
        yield f"alignment_{value}", gguf([align_key(value)]), f, f"general.alignment is {value}, expected a power of two"
    yield "alignment_as_string", gguf([align_key("32", STR)]), f, "general.alignment is string, expected uint32"
    yield "alignment_as_int64", gguf([align_key(32, I64)]), f, "general.alignment is int64"

    def listed(*infos, entries=(), data=b"\0" * 256):
        return pad(header(len(infos), len(entries)) + b"".join(entries) + b"".join(infos), 32) + data

    yield "no_dimensions", listed(text("a") + struct.pack("<IIQ", 0, T_F32, 0) + b"\0" * 9), f, "tensor a: 0 dimensions"
    yield "five_dimensions", listed(tensor("a", T_F32, (1,) * 5, 0)), f, "tensor a: 5 dimensions"
    yield "dimensions_huge", listed(text("a") + struct.pack("<I", 2**32 - 1) + b"\0" * 40), f, "4294967295 dimensions"
    yield "dimension_0", listed(tensor("a", T_F32, (4, 0), 0)), f, "tensor a: dimension 1 is 0"
    yield "elements_overflow", listed(tensor("a", T_F32, (2**32, 2**32), 0)), f, "overflow 64 bits"
    yield "bytes_overflow", listed(tensor("a", T_F32, (2**62,), 0)), f, "overflow 64 bits"
    yield "elements_overflow_small_blocks", listed(tensor("a", T_Q4_0, (2**40, 2**24), 0)), f, "overflow 64 bits"
    yield "row_not_whole_blocks", listed(tensor("blk.0.ffn_up.weight", T_Q4_K, (128, 2), 0)), f, "blk.0.ffn_up.weight: rows of 128 elements"
    for number in (4, 31, 36, 99, 2**32 - 1):
        yield f"tensor_type_{number}", listed(tensor("a", number, (8,), 0)), u, f"tensor a: tensor type number {number}"
    yield "tensor_name_empty", listed(tensor("", T_F32, (8,), 0)), f, "tensor entry 0: the name is empty"
    yield "tensor_name_with_zero_byte", listed(tensor(b"a\0b", T_F32, (8,), 0)), f, "zero byte"
    yield "tensor_name_too_long", listed(tensor("n" * 65, T_F32, (8,), 0)), f, "at most 64"
    yield "tensor_twice", listed(tensor("a", T_F32, (8,), 0), tensor("a", T_F32, (8,), 32)), f, "tensor a: the name appears twice"
    yield "offset_not_aligned", listed(tensor("a", T_F32, (8,), 16)), f, "tensor a: its offset 16 is no multiple of the alignment 32"
    yield "offset_overflows", listed(tensor("a", T_F32, (8,), 2**64 - 32)), f, "tensor a: its offset 18446744073709551584 overflows"
    yield "offset_past_end", listed(tensor("a", T_F32, (8,), 512)), f, "288 bytes are missing"
    yield "same_offset", listed(tensor("a", T_F32, (8,), 0), tensor("b", T_F32, (8,), 0)), f, "overlaps"
    yield "overlap", listed(tensor("a", T_F32, (20,), 0), tensor("b", T_F32, (8,), 64)), f, "tensor b: its data overlaps that of a"
    yield "overlap_out_of_order", listed(tensor("a", T_F32, (8,), 64), tensor("b", T_F32, (20,), 0)), f, "tensor a: its data overlaps that of b"
    yield "truncated_in_directory", listed(tensor("a_longer_name", T_F32, (8,), 0))[:60], f, "short of this field"
    yield "truncated_before_data", listed(tensor("a", T_F32, (8,), 0), data=b""), f, "tensor a: the file is truncated: this is the first tensor"
    yield "truncated_in_second", listed(tensor("a", T_F32, (8,), 0), tensor("b", T_F32, (64,), 32), tensor("c", T_F32, (8,), 288), data=b"\0" * 100), f, \
        "tensor b: the file is truncated: this is the first tensor that does not fit, it ends at byte 416 and the file at byte 228, 188 bytes are missing (220 up to"
    yield "truncated_by_one", gguf([ARCH], [SMALL])[:-1], f, "1 bytes are missing"

    yield "lonely-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "lonely-00002-of-00002.gguf"
    yield "renamed_part", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "does not end in -NNNNN-of-NNNNN.gguf"
    yield "no_split_keys-00001-of-00002", gguf([ARCH], [SMALL]), f, "split.count is missing"
    yield "count_differs-00001-of-00002", gguf([ARCH, *split(0, 3, 2)], [SMALL]), f, "split.count is 3, expected 2"
    yield "split_count_as_string-00001-of-00002", gguf([entry("split.count", STR, "2")]), f, "split.count is string"
    yield "swapped-00001-of-00002", gguf([ARCH, *split(1, 2, 2)], [SMALL]), f, "split.no is 1, expected 0"
    yield "swapped-00002-of-00002", gguf(split(0, 2, 2), [SECOND]), "", ""
    yield "second_of_another-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "-00002-of-00002.gguf: split.count is 4"
    yield "second_of_another-00002-of-00002", gguf(split(1, 4, 2), [SECOND]), "", ""
    yield "tensor_in_both-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "tensor a.weight is also in"
    yield "tensor_in_both-00002-of-00002", gguf(split(1, 2, 2), [SMALL]), "", ""
    yield "tensors_missing-00001-of-00002", gguf([ARCH, *split(0, 2, 3)], [SMALL]), f, "split.tensors.count is 3, expected 2"
    yield "tensors_missing-00002-of-00002", gguf(split(1, 2, 3), [SECOND]), "", ""
    yield "versions_differ-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "GGUF version 2, but the first part has version 3"
    yield "versions_differ-00002-of-00002", gguf(split(1, 2, 2), [SECOND], version=2), "", ""
    yield "alignments_differ-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "alignment 64, but the first part has 32"
    yield "alignments_differ-00002-of-00002", gguf([align_key(64), *split(1, 2, 2)], [SECOND], alignment=64), "", ""
    yield "second_truncated-00001-of-00002", gguf([ARCH, *split(0, 2, 2)], [SMALL]), f, "-00002-of-00002.gguf: tensor b.weight: the file is truncated"
    yield "second_truncated-00002-of-00002", gguf(split(1, 2, 2), [SECOND])[:-4], "", ""


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "tests/corpus/gguf"
    for sub in ("good", "bad"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
        for old in (folder / sub).glob("*.gguf"):
            old.unlink()
    lines = ["# Made by scripts/make_gguf_corpus.py: file, kind of error (ok: none), fragment of its message."]
    for name, raw in good():
        lines.append(f"good/{name}.gguf\tok\t")
        (folder / "good" / f"{name}.gguf").write_bytes(raw)
        assert len(raw) < 4096, name
    for name, raw, kind, fragment in bad():
        if kind:
            lines.append(f"bad/{name}.gguf\t{kind}\t{fragment}")
        (folder / "bad" / f"{name}.gguf").write_bytes(raw)
        assert len(raw) < 4096, name
    (folder / "manifest.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
