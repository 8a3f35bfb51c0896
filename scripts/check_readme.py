#!/usr/bin/env python3
"""Runs every command of the README's "Using it" block; exits 1 at the first that fails. The program must be built and the models fetched."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    section = (ROOT / "README.md").read_text().split("## Using it")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL).group(1)
    with tempfile.TemporaryDirectory() as folder:
        script = block.replace("build/release/quench", str(ROOT / "build" / "release" / "quench"))
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stdout[-2000:], result.stderr[-2000:], sep="\n")
        sys.exit(f"README: a command exited {result.returncode}")
    if "PASS" not in result.stdout:
        sys.exit("README: the comparison and the verification did not say PASS")
    print(f"README: {len(block.strip().splitlines())} lines ran")


if __name__ == "__main__":
    main()
