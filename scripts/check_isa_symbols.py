#!/usr/bin/env python3
"""Checks that no function compiled for one instruction set can stand in for a common one.

An inline function that a unit of src/kernels/<isa>/ defines is a weak symbol, and the linker keeps any one copy for the whole program:
a copy with AVX-512 instructions would crash other machines. So every weak function of such a unit has to carry the instruction set's
namespace in its name. Run on a release build: without optimisation even trivial inline functions become symbols.

Usage: check_isa_symbols.py BUILD_DIR
"""

import pathlib
import subprocess
import sys

ISAS = ("avx2", "avx512", "amx", "neon")
WEAK_FUNCTIONS = "WV"  # nm: weak, weak object; undefined weak ones are lower case


def foreign_weak_symbols(path, isa):
    listing = subprocess.run(["nm", "--defined-only", str(path)], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        _, kind, name = line.split(maxsplit=2)
        own = f"{len(isa)}{isa}" in name  # a namespace in a mangled name
        if kind in WEAK_FUNCTIONS and not own and not name.startswith("DW.ref."):
            yield name


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().splitlines()[-1])
    checked = 0
    bad = []
    for isa in ISAS:
        for path in sorted(pathlib.Path(sys.argv[1]).rglob(f"quench_kernels_{isa}.dir/**/*.o")):
            checked += 1
            bad += [f"{path.name}: {name} is weak and not of {isa}" for name in foreign_weak_symbols(path, isa)]
    for message in bad:
        print(message, file=sys.stderr)
    if checked == 0:
        sys.exit("no objects of quench_kernels_<isa> in " + sys.argv[1])
    if bad:
        sys.exit(1)


if __name__ == "__main__":
    main()
