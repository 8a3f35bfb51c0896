#!/usr/bin/env bash
# `quench verify` on a synthetic model of every weight format, with either type of KV cache. usage: verify_formats.sh [QUENCH] [TOKENS]
set -euo pipefail
cd "$(dirname "$0")/.."
quench=${1:-build/release/quench}
tokens=${2:-200}
formats=(f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_K q3_K q4_K q5_K q6_K iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq4_nl iq4_xs tq1_0 tq2_0
  mxfp4 nvfp4 q1_0 q2_0)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What a command says is shown when it fails.
logged() { "$@" > "$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }; }
checked=0
for family in qwen3 qwen3moe; do
  for format in "${formats[@]}"; do
    logged "$quench" synth "$folder/model.gguf" --family "$family" --size tiny --format "$format" --seed 3
    for cache in f16 q8_0; do
      printf '%-9s %-8s %-5s ' "$family" "$format" "$cache"
      logged "$quench" verify "$folder/model.gguf" --quick --tokens "$tokens" --cache-type "$cache"
      tail -n 1 "$folder/log"
      checked=$((checked + 1))
    done
  done
done
echo "verify: $checked models and caches gave the same bits in every way of computing them"
