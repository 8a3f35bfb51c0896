#!/usr/bin/env python3
"""Checks that includes only point down the layers. Exits 1 and names each arrow that does not.

A layer may include itself and the layers listed for it here: the picture of docs/architecture.md, as data.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BELOW = {
    "base": [],
    "quant": ["base"],
    "gguf": ["quant", "base"],
    "tensor": ["base"],
    "kernels": ["tensor", "quant", "base"],
    "model": ["kernels", "tensor", "gguf", "quant", "base"],
    "sample": ["base"],
    "text": ["gguf", "quant", "base"],
    "engine": ["model", "sample", "text", "kernels", "tensor", "gguf", "quant", "base"],
    "api": ["engine", "model", "sample", "text", "kernels", "tensor", "gguf", "quant", "base"],
    "cli": ["engine", "model", "sample", "text", "kernels", "tensor", "gguf", "quant", "base"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def layer_of(path: str) -> str | None:
    head = path.split("/")[0]
    return head if head in BELOW else None


def main() -> None:
    wrong = []
    files = [p for p in (ROOT / "src").rglob("*") if p.suffix in (".h", ".cpp", ".inc")]
    for file in files:
        relative = file.relative_to(ROOT / "src")
        layer = layer_of(str(relative))
        if layer is None:
            wrong.append(f"src/{relative}: is in no layer")
            continue
        for included in INCLUDE.findall(file.read_text()):
            target = layer_of(included)
            if target is None:
                if not included.startswith("quench/"):
                    wrong.append(f"src/{relative}: includes \"{included}\", which is not a path from src/")
            elif target != layer and target not in BELOW[layer]:
                wrong.append(f"src/{relative}: {layer} includes {target} (\"{included}\"): the arrow points up")
    for line in wrong:
        print(line)
    if wrong:
        sys.exit(1)
    print(f"layers: {len(files)} files, all includes point down")


if __name__ == "__main__":
    main()
