#!/usr/bin/env bash
# Tracked files name no path of a machine.
set -euo pipefail
cd "$(dirname "$0")/.."
if git grep -nIE '(^|[^A-Za-z0-9_.])/(root|home/[a-z]+|work)/' -- . ':!scripts/check_public_text.sh'; then
  echo "a tracked file names a path of a machine" >&2
  exit 1
fi
echo "text: no machine paths"
