#!/usr/bin/env python3
"""Checks what must not compile.

usage: check_compile_fail.py [COMPILER ...]        default: those of g++ and clang++-19 that are installed

Each tests/compile_fail/*.cpp is compiled twice. As it is, it must compile; with MUST_FAIL defined it must not, and the diagnostics must
hold every text that the file expects:
  // expect: "text"        // expect-gcc: "text"        // expect-clang: "text"
Exits 1 when a case does not behave so, 2 when there is no compiler.
"""
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "compile_fail"
FLAGS = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src'}"]


def compile_case(compiler: str, case: pathlib.Path, *defines: str) -> subprocess.CompletedProcess:
    # In the C locale, g++ quotes with ASCII characters.
    return subprocess.run([compiler, *FLAGS, *defines, str(case)], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})


def expected_texts(case: pathlib.Path, compiler: str) -> list[str]:
    kind = "clang" if "clang" in compiler else "gcc"
    return re.findall(rf'^// expect(?:-{kind})?: "(.*)"$', case.read_text(), re.MULTILINE)


def check(compiler: str, case: pathlib.Path) -> list[str]:
    """What is wrong with one case, one line each."""
    place = f"{case.name} with {compiler}"
    texts = expected_texts(case, compiler)
    if not texts:
        return [f"{place}: names no diagnostic to expect"]
    good = compile_case(compiler, case)
    if good.returncode != 0:
        return [f"{place}: the twin that must compile does not:\n{good.stderr}"]
    bad = compile_case(compiler, case, "-DMUST_FAIL")
    if bad.returncode == 0:
        return [f"{place}: compiles, but must not"]
    return [f'{place}: the diagnostics lack "{text}":\n{bad.stderr}' for text in texts if text not in bad.stderr]


def main() -> int:
    compilers = sys.argv[1:] or [name for name in ("g++", "clang++-19") if shutil.which(name)]
    if not compilers:
        print("check_compile_fail: no compiler found", file=sys.stderr)
        return 2
    cases = sorted(CASES.glob("*.cpp"))
    pairs = [(compiler, case) for compiler in compilers for case in cases]
    with ThreadPoolExecutor(max_workers=2) as workers:
        problems = [line for lines in workers.map(lambda pair: check(*pair), pairs) for line in lines]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
