"""The Python that has a peer: one that is named, or a virtual environment under build/peers that is made when it is missing."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# clang 19 and the processor's own instructions, AMX where it has it: the fastest build of it that we know.
LLAMA_FLAGS = "-DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DGGML_NATIVE=ON -DGGML_OPENMP=OFF"


def variable(peer: str) -> str:
    return f"QUENCH_{peer.upper()}_PYTHON"


def peer_python(peer: str, named: str | None) -> str:
    """The path of a Python that imports the peer. Builds it when none is named."""
    python = named or os.environ.get(variable(peer))
    if python:
        if not shutil.which(python):
            sys.exit(f"{python} is no program; give a Python that has the peer with --{peer}-python or {variable(peer)}")
        return python
    folder = ROOT / "build" / "peers" / peer
    if not (folder / "ready").exists():
        make(peer, folder)
    return str(folder / "bin" / "python")


def make(peer: str, folder: pathlib.Path) -> None:
    environment = dict(os.environ)
    options = []
    if peer == "llama":
        if not shutil.which("clang++-19"):
            sys.exit("clang 19 builds llama.cpp: ./dev setup installs it")
        environment["CMAKE_ARGS"] = LLAMA_FLAGS
        options = ["--no-binary", "llama-cpp-python"]
    print(f"making {folder}: some minutes, once", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    requirements = HERE / f"requirements-{peer}.txt"
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *options, "-r", requirements], check=True, env=environment)
    (folder / "ready").touch()
