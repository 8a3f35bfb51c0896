#!/usr/bin/env bash
# Installs a build, builds examples/ against what was installed, through CMake and through pkg-config, and runs them on a model.
# usage: check_installed_library.sh BUILD_FOLDER MODEL
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() {  # expect TEXT COMMAND...: the command's output holds the text
  local text=$1 output
  shift
  output=$("$@")
  case $output in
    *"$text"*) echo "$(basename "$1"): $text" ;;
    *) echo "$(basename "$1"): '$text' is not in: $output" >&2; exit 1 ;;
  esac
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S examples -B "$work/examples" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_FLAGS="-Wall -Wextra -Werror -pedantic" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror -pedantic" >/dev/null
cmake --build "$work/examples" >/dev/null
question="What is the capital of France?"
expect "The capital of France is Paris." "$work/examples/answer" "$model" "$question"
expect "The capital of France is Paris." "$work/examples/answer_c" "$model" "$question"
expect "Once upon a time" "$work/examples/side_by_side" "$model" "Once upon a time" "The sky is"
expect "%" "$work/examples/probabilities" "$model" "The capital of France is"
expect "16 tokens" "$work/examples/stream_c" "$model" "Once upon a time"
expect "1.0000" "$work/examples/similarity" "$model" "a cat" "a cat" "a dog"
expect "least expected: ' banana'" "$work/examples/perplexity" "$model" "The capital of France is banana, and the capital of Italy is Rome."

pc=$(dirname "$(find "$work/prefix" -name quench.pc)")
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror examples/answer_c.c -o "$work/answer_pc" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs quench)
LD_LIBRARY_PATH=$(dirname "$pc") expect "The capital of France is Paris." "$work/answer_pc" "$model" "$question"
echo "installed library: examples build and answer"
