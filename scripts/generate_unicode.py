#!/usr/bin/env python3
"""Writes src/text/unicode_tables.h: the class of every code point, as a two-stage table.

Run with PyPI unicodedata2 15.1.0 installed:  python3 scripts/generate_unicode.py > src/text/unicode_tables.h

--compare FILE reads llama.cpp's unicode-data.cpp instead, and prints where its classes differ from ours.
"""

import argparse
import re
import sys

import unicodedata2

VERSION = "15.1.0"
CODE_POINTS = 0x110000
BLOCK = 128

# One bit per class, as CharSet in src/text/unicode.h has them.
OTHER, LETTER, NUMBER, MARK, PUNCTUATION, SYMBOL, BLANK, NEWLINE = (1 << bit for bit in range(8))
BY_CATEGORY = {"L": LETTER, "N": NUMBER, "M": MARK, "P": PUNCTUATION, "S": SYMBOL, "Z": BLANK, "C": OTHER}


def class_of(code_point):
    if code_point in (0x0A, 0x0D):
        return NEWLINE
    if code_point in (0x09, 0x0B, 0x0C, 0x85):
        return BLANK
    return BY_CATEGORY[unicodedata2.category(chr(code_point))[0]]


def two_stages(classes):
    blocks, index = {}, []
    for start in range(0, CODE_POINTS, BLOCK):
        block = tuple(classes[start : start + BLOCK])
        index.append(blocks.setdefault(block, len(blocks)))
    assert len(blocks) <= 256, "the first stage holds bytes"
    return index, list(blocks)


def rows(values):
    return "\n".join("    " + " ".join(f"{value}," for value in values[i : i + 32]) for i in range(0, len(values), 32))


def header(index, blocks):
    return f"""// Generated data: written by scripts/generate_unicode.py from Unicode {VERSION} (PyPI unicodedata2). Do not edit.
//
// kClassOfBlock[code point / {BLOCK}] names a block of kClassBlocks, which holds one class (a CharSet with one bit) per code point.

#pragma once

#include <array>
#include <cstdint>

namespace quench {{

// clang-format off
inline constexpr std::array<std::uint8_t, {len(index)}> kClassOfBlock = {{
{rows(index)}
}};

inline constexpr std::array<std::array<std::uint8_t, {BLOCK}>, {len(blocks)}> kClassBlocks = {{{{
{chr(10).join("  {" + chr(10) + rows(block) + chr(10) + "  }," for block in blocks)}
}}}};
// clang-format on

}}  // namespace quench
"""


def llama_classes(path):
    text = open(path, encoding="utf-8").read()

    def section(name):
        start = text.index(name)
        return text[start : text.index("};", start)]

    starts = [(int(a, 16), int(b, 16)) for a, b in re.findall(r"\{0x(\w+), 0x(\w+)\}", section("unicode_ranges_flags"))]
    flag_bits = {0x01: OTHER, 0x02: NUMBER, 0x04: LETTER, 0x08: BLANK, 0x10: MARK, 0x20: PUNCTUATION, 0x40: SYMBOL, 0x80: OTHER}
    classes = []
    for (first, flags), (end, _) in zip(starts, starts[1:]):
        classes += [flag_bits[flags & 0xFF]] * (end - first)
    whitespace = {int(value, 16) for value in re.findall(r"^0x(\w+),", section("unicode_set_whitespace"), re.M)}
    assert all(value in whitespace for value, bit in enumerate(classes) if bit == BLANK), "a separator that is no white space"
    for value in whitespace:
        classes[value] = NEWLINE if value in (0x0A, 0x0D) else BLANK
    return classes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", metavar="FILE")
    options = parser.parse_args()
    if unicodedata2.unidata_version != VERSION:
        sys.exit(f"unicodedata2 has Unicode {unicodedata2.unidata_version}, these tables are of {VERSION}")
    classes = [class_of(value) for value in range(CODE_POINTS)]
    if options.compare:
        theirs = llama_classes(options.compare)
        differences = [value for value in range(CODE_POINTS) if classes[value] != theirs[value]]
        print(f"{len(differences)} differences")
        for value in differences:
            print(f"U+{value:04X} {unicodedata2.category(chr(value))} theirs {theirs[value]}")
        return
    sys.stdout.write(header(*two_stages(classes)))


if __name__ == "__main__":
    main()
