#!/bin/sh
# Compares the NEON kernels with the scalar definition and the pinned logits: cross-compiles tests/isa for aarch64 and runs it, under qemu-user where this
# machine is no aarch64 one. Needs g++-aarch64-linux-gnu and qemu-user. Usage: scripts/check_neon.sh [BUILD_DIR]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/neon-check}
compiler=${AARCH64_CXX:-aarch64-linux-gnu-g++}
runner=qemu-aarch64
case $(uname -m) in aarch64|arm64) compiler=${AARCH64_CXX:-c++} runner= ;; esac

flags="-std=c++23 -O2 -Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off -DQUENCH_HAVE_NEON=1 -I$root/src -I$root/tests/isa"
mkdir -p "$build"
# The log is left out: it would need the logging libraries for aarch64, and no kernel uses it.
sources=$(ls "$root"/src/base/*.cpp "$root"/src/quant/*.cpp "$root"/src/kernels/*.cpp "$root"/src/kernels/packing/*.cpp \
  "$root"/src/kernels/spec/*.cpp "$root"/src/kernels/neon/*.cpp "$root"/src/gguf/*.cpp "$root"/src/model/*.cpp \
  "$root"/tests/golden_logits.cpp "$root"/tests/isa/*.cpp | grep -v -e '_test\.cpp$' -e '/log\.cpp$')

{
  echo "all: $build/kernel_check"
  objects=
  for source in $sources; do
    object=$build/$(echo "${source#"$root"/}" | tr / _).o
    objects="$objects $object"
    isa=
    case $source in */kernels/neon/*) isa=-march=armv8.2-a+dotprod+fp16 ;; esac
    printf '%s: %s\n\t%s %s %s -MMD -c %s -o %s\n' "$object" "$source" "$compiler" "$flags" "$isa" "$source" "$object"
    printf -- '-include %s\n' "${object%.o}.d"
  done
  printf '%s:%s\n\t%s -static%s -o %s -lpthread\n' "$build/kernel_check" "$objects" "$compiler" "$objects" "$build/kernel_check"
} > "$build/Makefile"
make --silent -f "$build/Makefile" -j"$(nproc)" all
QUENCH_GOLDEN_LOGITS=$root/tests/golden/logits/hashes.txt $runner "$build/kernel_check"
