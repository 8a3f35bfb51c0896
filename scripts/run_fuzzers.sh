#!/usr/bin/env bash
# Runs every fuzzer in a build folder for some seconds, from its seeds. usage: run_fuzzers.sh BUILD_FOLDER SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
seconds=$2
shopt -s nullglob
fuzzers=("$build"/fuzz/*_fuzz)
[ ${#fuzzers[@]} -gt 0 ] || { echo "no fuzzers in $build/fuzz" >&2; exit 1; }
for fuzzer in "${fuzzers[@]}"; do
  name=$(basename "$fuzzer" _fuzz)
  work=$(mktemp -d)
  seeds=()
  for folder in tests/corpus/"$name"*; do
    while IFS= read -r sub; do seeds+=("$sub"); done < <(find "$folder" -type d)
  done
  echo "fuzz: $name for $seconds s from ${#seeds[@]} seed folders" >&2
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 -artifact_prefix="$work/" "$work" "${seeds[@]}"
  rm -rf "$work"
done
echo "fuzz: ${#fuzzers[@]} fuzzers clean"
