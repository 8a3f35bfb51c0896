"""What is measured, as quench bench and the peers' scripts take it."""
import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Test:
    name: str  # as quench bench names it
    kind: str  # pp or tg
    tokens: int  # of each sequence
    sequences: int  # side by side

    @property
    def all_tokens(self) -> int:
        return self.tokens * self.sequences


@dataclass(frozen=True)
class Sweep:
    prompt: tuple[int, ...]
    generate: tuple[int, ...]
    depths: tuple[int, ...]
    threads: int
    cache_type: str = "f16"
    sequences: tuple[int, ...] = (1,)

    def arguments(self) -> list[str]:
        lists = {"-p": self.prompt, "-n": self.generate, "-d": self.depths, "-s": self.sequences, "-t": (self.threads,)}
        return [word for option, values in lists.items() for word in (option, ",".join(map(str, values)))]

    def tests(self, depth: int) -> list[Test]:
        suffix = f"@d{depth}" if depth else ""
        found = [Test(f"pp{n}{suffix}", "pp", n, 1) for n in self.prompt if n]
        return found + [Test(f"tg{n}{f'x{s}' if s > 1 else ''}{suffix}", "tg", n, s) for n in self.generate if n for s in self.sequences]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", type=numbers, default=(512,), metavar="N,..", help="prompt lengths")
    parser.add_argument("-n", type=numbers, default=(32,), metavar="N,..", help="tokens to generate")
    parser.add_argument("-d", type=numbers, default=(0, 4096), metavar="N,..", help="tokens in the cache before")
    parser.add_argument("-s", type=numbers, default=(1,), metavar="N,..", help="sequences that generate side by side")
    parser.add_argument("-t", type=int, default=2, metavar="N", help="threads")
    parser.add_argument("--cache-type", default="f16", metavar="TYPE", help="type of the KV cache on both sides")


def sweep_of(arguments: argparse.Namespace) -> Sweep:
    return Sweep(arguments.p, arguments.n, arguments.d, arguments.t, arguments.cache_type, arguments.s)
