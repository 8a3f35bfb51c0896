#!/usr/bin/env python3
"""Writes src/quant/grids.cpp: the published grid tables of the iq1, iq2 and iq3 formats.

Run with PyPI gguf (0.19.0) and numpy installed:  python3 scripts/generate_grids.py > src/quant/grids.cpp
"""

import numpy as np
from gguf import quants

TABLES = [
    ("Iq2XxsGrid", quants.IQ2_XXS),
    ("Iq2XsGrid", quants.IQ2_XS),
    ("Iq2SGrid", quants.IQ2_S),
    ("Iq3XxsGrid", quants.IQ3_XXS),
    ("Iq3SGrid", quants.IQ3_S),
    ("Iq1SGrid", quants.IQ1_S),
]

HEADER = """// Generated data: written by scripts/generate_grids.py from PyPI gguf 0.19.0. Do not edit.
//
// Each code packs the points of one grid entry as indices into the short list of values that the grid uses, first element in the
// lowest bits. The tables that the decoders read are expanded from the codes by the compiler.

#include "quant/grids.h"

#include <cstddef>

namespace quench {
namespace {

template <class Word, int kBits, std::size_t kEntries, std::size_t kValues>
constexpr std::array<Word, kEntries> expand(const std::array<std::uint16_t, kEntries>& codes, const std::array<int, kValues>& values) {
  std::array<Word, kEntries> grid{};
  for (std::size_t entry = 0; entry < kEntries; ++entry) {
    for (unsigned i = 0; i < sizeof(Word); ++i) {
      const unsigned index = (static_cast<unsigned>(codes[entry]) >> (i * kBits)) & ((1u << kBits) - 1u);
      grid[entry] |= static_cast<Word>(static_cast<std::uint8_t>(values[index])) << (8 * i);
    }
  }
  return grid;
}
"""


def table(name, cls):
    cls.init_grid()
    entries, points = cls.grid_shape
    grid = cls.grid.reshape(entries, points)
    values = [int(v) for v in cls.grid_map]
    bits = 2 if len(values) <= 4 else 3
    codes = np.zeros(entries, dtype=np.uint32)
    for i in range(points):
        codes |= np.array([values.index(int(v)) for v in grid[:, i]], dtype=np.uint32) << (bits * i)

    if name == "Iq1SGrid":  # eighths, so that the offset of an eighth is an integer too
        values = [8 * v for v in values]
    lines = [f"constexpr std::array<int, {len(values)}> k{name}Values = {{{', '.join(str(v) for v in values)}}};"]
    lines.append(f"constexpr std::array<std::uint16_t, {entries}> k{name}Codes = {{")
    for start in range(0, entries, 16):
        lines.append("    " + " ".join(f"0x{c:04x}," for c in codes[start : start + 16]))
    lines.append("};")
    word = "std::uint64_t" if points == 8 else "std::uint32_t"
    definition = f"constinit const std::array<{word}, {entries}> k{name} = expand<{word}, {bits}>(k{name}Codes, k{name}Values);"
    return "\n".join(lines), definition


def main():
    tables = [table(name, cls) for name, cls in TABLES]
    print(HEADER)
    print("// clang-format off")
    print("\n\n".join(codes for codes, _ in tables))
    print("\n}  // namespace\n")
    print("\n".join(definition for _, definition in tables))
    print("// clang-format on\n\n}  // namespace quench")


main()
