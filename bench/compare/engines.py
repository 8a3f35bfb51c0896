"""The engines as processes that hold a model and measure on request.

Both sides load once and stay: a round measures computing alone, a prompt at depth is filled once, and a pair takes seconds, so that the
two sides of a pair meet the same machine. An engine that is not asked waits for its input and takes no processor.
"""
import contextlib
import json
import pathlib
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
WAIT_SECONDS = 10


class EngineError(Exception):
    """A process ended, or said what nobody asked for."""


class Engine:
    """Lines to a process, each answered with a line of JSON."""

    def __init__(self, command: list[str]):
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def ask(self, request: str) -> dict:
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its exit code says more
        return self.answer()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise EngineError(f"{' '.join(self.command[:3])} ... ended with exit code {self.process.wait()}")
        return json.loads(line)


class Quench(Engine):
    def __init__(self, program, model, tests, probe: bool = True):
        command = [program, "bench", model, "--paced", "-r", "1", *tests.arguments(), "--cache-type", tests.cache_type]
        super().__init__(command + ([] if probe else ["--probe", "0"]))

    def probe(self) -> dict:
        """The better of two passes, each rate by itself."""
        passes = [self.ask("probe") for _ in range(2)]
        return {key: max(one[key] for one in passes) for key in passes[0]}


class Peer(Engine):
    """bench/compare/peer_NAME.py in the peer's own Python. Its first line describes it."""

    def __init__(self, name, python, model, tests):
        command = [python, HERE / f"peer_{name}.py", model, *tests.arguments(), "--cache-type", tests.cache_type]
        super().__init__(command)
        self.description = self.answer()


def all_tokens(row: dict) -> int:
    """`tokens` are those of each sequence, the rate is that of all of them."""
    return row["tokens"] * row.get("sequences", 1)


def seconds_by_test(answer: dict) -> dict[str, float]:
    return {row["test"]: all_tokens(row) / row["tokens_per_second"] for row in answer["results"]}


def quench_first_token(program, model, ids: list[int], threads: int) -> float:
    """From the start of the program to its end after one token."""
    command = [program, "run", model, "--ids", " ".join(map(str, ids)), "-n", "1", "--temp", "0", "--ignore-eos", "-t", str(threads)]
    start = time.perf_counter()
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if result.returncode != 0:
        raise EngineError(f"quench run exited {result.returncode}: {result.stderr.strip()}")
    return seconds


def peer_first_token(name, python, model, ids: list[int], threads: int) -> float:
    """From the start of loading to the first token; the start of Python and its imports are not counted."""
    command = [python, HERE / f"peer_{name}.py", model, "-t", str(threads), "--first-token", " ".join(map(str, ids))]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise EngineError(f"{name} exited {result.returncode}: {result.stderr.strip()[-500:]}")
    return json.loads(result.stdout.splitlines()[-1])["seconds"]
