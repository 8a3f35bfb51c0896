"""What is measured, as quench bench and the peers' scripts take it."""
import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Sweep:
    prompt: tuple[int, ...]
    generate: tuple[int, ...]
    depths: tuple[int, ...]
    threads: int
    cache_type: str = "f16"

    def arguments(self) -> list[str]:
        lists = {"-p": self.prompt, "-n": self.generate, "-d": self.depths, "-t": (self.threads,)}
        return [word for option, values in lists.items() for word in (option, ",".join(map(str, values)))]

    def tests(self, depth: int) -> list[tuple[str, str, int]]:
        """(name, kind, tokens) at a depth, named as quench bench names them."""
        suffix = f"@d{depth}" if depth else ""
        found = [(f"pp{n}{suffix}", "pp", n) for n in self.prompt if n]
        return found + [(f"tg{n}{suffix}", "tg", n) for n in self.generate if n]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", type=numbers, default=(512,), metavar="N,..", help="prompt lengths")
    parser.add_argument("-n", type=numbers, default=(32,), metavar="N,..", help="tokens to generate")
    parser.add_argument("-d", type=numbers, default=(0, 4096), metavar="N,..", help="tokens in the cache before")
    parser.add_argument("-t", type=int, default=2, metavar="N", help="threads")
    parser.add_argument("--cache-type", default="f16", metavar="TYPE", help="type of the KV cache on both sides")


def sweep_of(arguments: argparse.Namespace) -> Sweep:
    return Sweep(arguments.p, arguments.n, arguments.d, arguments.t, arguments.cache_type)
