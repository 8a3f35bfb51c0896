#!/bin/sh
# Compares the NEON kernels with the scalar definition and the pinned logits: cross-compiles tests/isa for aarch64 and runs it, under qemu-user where this
# machine is no aarch64 one. Needs g++-aarch64-linux-gnu, ninja and qemu-user. Usage: scripts/check_neon.sh [BUILD_DIR]
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
  echo "rule compile"
  echo "  command = $compiler $flags \$isa -MMD -MF \$out.d -c \$in -o \$out"
  echo "  depfile = \$out.d"
  echo "  deps = gcc"
  echo "rule link"
  echo "  command = $compiler -static \$in -o \$out -lpthread"
  objects=
  for source in $sources; do
    object=$build/$(echo "${source#"$root"/}" | tr / _).o
    objects="$objects $object"
    echo "build $object: compile $source"
    case $source in */kernels/neon/*) echo "  isa = -march=armv8.2-a+dotprod+fp16" ;; esac
  done
  echo "build $build/kernel_check: link$objects"
} > "$build/build.ninja"
ninja --quiet -C "$build" -j "$(nproc)"
QUENCH_GOLDEN_LOGITS=$root/tests/golden/logits/hashes.txt $runner "$build/kernel_check"
