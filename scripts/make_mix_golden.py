#!/usr/bin/env python3
"""Which format llama.cpp's quantizer gives each matrix, for every mix that needs no importance matrix: tests/golden/mixes.tsv.

usage: make_mix_golden.py QUENCH OUT.tsv        (QUENCH: the program; it makes the f16 models that are asked about)

Needs llama-cpp-python (0.3.36 made the file that is checked in). The quantizer runs dry: nothing is written but its log. A line holds
family, size, mix, then per role the formats of its layers, run-length coded.
"""
import ctypes
import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp as llama

MODELS = [("qwen3", "small"), ("gemma3", "small"), ("qwen2", "0.5b")]
FILE_TYPES = {
    "Q4_0_mix": 2, "Q4_1_mix": 3, "Q8_0_mix": 7, "Q5_0_mix": 8, "Q5_1_mix": 9, "Q2_K_mix": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13,
    "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K_mix": 18, "IQ2_XXS_mix": 19, "IQ2_XS_mix": 20, "Q2_K_S": 21,
    "IQ3_XS": 22, "IQ3_XXS_mix": 23, "IQ1_S_mix": 24, "IQ4_NL_mix": 25, "IQ3_S_mix": 26, "IQ3_M": 27, "IQ2_S_mix": 28, "IQ2_M": 29,
    "IQ4_XS_mix": 30, "IQ1_M_mix": 31, "TQ1_0_mix": 36, "TQ2_0_mix": 37,
}
ROLES = ["token_embd", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]

log_lines = []
callback = llama.llama_log_callback(lambda level, text, data: log_lines.append(text.decode(errors="replace")))
llama.llama_log_set(callback, ctypes.c_void_p(0))
llama.llama_backend_init()


def formats(model, file_type):
    params = llama.llama_model_quantize_default_params()
    params.ftype, params.dry_run, params.nthread = file_type, True, 1
    log_lines.clear()
    assert llama.llama_model_quantize(str(model).encode(), b"unused", ctypes.byref(params)) == 0
    found = {}
    for name, kind, rest in re.findall(r"\] +(\S+)\.weight +- \[[^\]]*\], type = +(\S+),([^\n]*)", "".join(log_lines)):
        changed = re.search(r"->[^()]*\((\w+)\)", rest)
        layer = re.match(r"blk\.(\d+)\.(\w+)", name)
        role, index = (layer[2], int(layer[1])) if layer else (name, 0)
        found.setdefault(role, {})[index] = changed[1] if changed else kind
    return {role: [found[role][i] for i in sorted(found[role])] for role in ROLES}


def main():
    quench, out = sys.argv[1:]
    lines = ["# Made by scripts/make_mix_golden.py with llama-cpp-python " + llama.__version__ + "."]
    with tempfile.TemporaryDirectory() as folder:
        for family, size in MODELS:
            model = Path(folder) / "f16.gguf"
            subprocess.run([quench, "synth", model, "--family", family, "--size", size, "--format", "f16", "--seed", "1"], check=True)
            for mix, file_type in FILE_TYPES.items():
                fields = [family, size, mix]
                for role, kinds in formats(model, file_type).items():
                    runs = [f"{kind}*{len(list(group))}" for kind, group in itertools.groupby(kinds)]
                    fields.append(role + " " + " ".join(runs))
                lines.append("\t".join(fields))
    Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
