#!/usr/bin/env python3
"""Writes the golden files of the quantized formats: tests/golden/quant/NAME.bin.

Each file is little-endian: u32 number of blocks, the blocks as bytes, their values as f32. Blocks are random ones with sane scales,
wholly random ones, and extremes (all bits 0, all bits 1, subnormal, largest, infinite and NaN scales). The values are those of
PyPI gguf's dequantization; for q1_0 and q2_0, which it lacks, those of ggml's own to_float.

Versions used for the files checked in: gguf 0.19.0, numpy 2.4, ggml from llama-cpp-python 0.3.36.

  python3 scripts/golden_quant.py tests/golden/quant --ggml PATH/libggml-base.so
"""

import argparse
import ctypes
import pathlib
import struct

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

# Offsets of the f16 scales inside a block.
F16_SCALES = {
    "f16": [0], "q1_0": [0], "q2_0": [0], "q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0],
    "q2_K": [80, 82], "q3_K": [108], "q4_K": [0, 2], "q5_K": [0, 2], "q6_K": [208],
    "iq2_xxs": [0], "iq2_xs": [0], "iq2_s": [0], "iq3_xxs": [0], "iq3_s": [0], "iq1_s": [0], "iq4_nl": [0], "iq4_xs": [0],
    "tq1_0": [52], "tq2_0": [64],
}  # fmt: skip
BYTE_SCALES = {"mxfp4": [0], "nvfp4": [0, 1, 2, 3]}
EXTREME_F16 = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01]
EXTREME_BYTES = [0x00, 0x01, 0x02, 0x07, 0x08, 0x7E, 0x7F, 0x80, 0xFE, 0xFF]
GGML_ONLY = {"q1_0": (128, 18), "q2_0": (64, 18)}
QUANTIZED = [
    "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s",
    "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "iq1_m", "tq1_0", "tq2_0", "mxfp4", "nvfp4", "q1_0", "q2_0",
]  # fmt: skip


def set_scale(name, block, index, value):
    """Writes one scale: an f16 bit pattern, or for mxfp4 and nvfp4 a byte."""
    if name == "iq1_m":  # four bits in the top of each of the four scale words
        for i in range(4):
            block[48 + 2 * i + 1] = (int(block[48 + 2 * i + 1]) & 0x0F) | (((value >> (4 * i)) & 15) << 4)
    elif name in BYTE_SCALES:
        block[BYTE_SCALES[name][index]] = value
    else:
        at = F16_SCALES[name][index]
        block[at] = value & 0xFF
        block[at + 1] = value >> 8


def blocks_of(name, block_bytes, rng):
    n_scales = len(BYTE_SCALES.get(name, F16_SCALES.get(name, [0])))
    blocks = [np.zeros(block_bytes, np.uint8), np.full(block_bytes, 0xFF, np.uint8)]
    blocks += [rng.integers(0, 256, block_bytes, dtype=np.uint8) for _ in range(2)]
    for _ in range(6):
        block = rng.integers(0, 256, block_bytes, dtype=np.uint8)
        for index in range(n_scales):
            sane = int(np.float16(rng.normal() * 0.01).view(np.uint16))
            set_scale(name, block, index, int(rng.integers(100, 140)) if name == "mxfp4" else sane & 0x7F if name == "nvfp4" else sane)
        blocks.append(block)
    ones = np.full(block_bytes, 0xFF, np.uint8)
    for index in range(n_scales):
        set_scale(name, ones, index, 0x40 if name in BYTE_SCALES else 0x1C01)
    blocks.append(ones)
    for extreme in EXTREME_BYTES if name in BYTE_SCALES else EXTREME_F16:
        block = rng.integers(0, 256, block_bytes, dtype=np.uint8)
        for index in range(n_scales):
            set_scale(name, block, index, extreme)
        blocks.append(block)
    return np.stack(blocks)


def decode(name, blocks, ggml):
    if name not in GGML_ONLY:
        return quants.dequantize(blocks, GGMLQuantizationType[name.upper()])
    values = np.zeros((len(blocks), GGML_ONLY[name][0]), np.float32)
    function = getattr(ggml, f"dequantize_row_{name}")
    function(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(values.ctypes.data), ctypes.c_int64(values.size))
    return values


def float_blocks(name, rng):
    if name == "f32":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38], np.float32)
        return np.concatenate([special, rng.normal(size=57).astype(np.float32)]).view(np.uint8).reshape(-1, 4)
    patterns = np.concatenate([np.arange(0, 65536, 257, dtype=np.uint16), np.array(EXTREME_F16, np.uint16)])
    return patterns.view(np.uint8).reshape(-1, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ggml", required=True, help="libggml-base.so")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    ggml = ctypes.CDLL(arguments.ggml)
    np.seterr(all="ignore")
    for number, name in enumerate(["f32", "f16", "bf16"] + QUANTIZED):
        rng = np.random.default_rng(number)
        if name in ("f32", "f16", "bf16"):
            blocks = float_blocks(name, rng)
        else:
            size = GGML_ONLY[name][1] if name in GGML_ONLY else GGML_QUANT_SIZES[GGMLQuantizationType[name.upper()]][1]
            blocks = blocks_of(name, size, rng)
        blocks = np.ascontiguousarray(blocks)
        values = np.ascontiguousarray(decode(name, blocks, ggml), dtype=np.float32)
        (arguments.folder / f"{name}.bin").write_bytes(struct.pack("<I", len(blocks)) + blocks.tobytes() + values.tobytes())


main()
