"""Cells of the comparison and their Markdown."""
import statistics
from dataclasses import dataclass

import targets


@dataclass
class Cell:
    """A line of the table. Speeds are in `unit`; `ratio` is how many times better we are."""
    test: str
    ours: float
    peer: float
    unit: str
    ratios: list[float]
    lower_bound: float
    target: targets.Target
    own_share: float | None = None  # of the roofline that bounds the test
    read_share: float | None = None
    peer_share: float | None = None  # of the read roofline
    limit: float | None = None  # that our figure may not exceed; then the ratio is not judged

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def needed(self) -> float | None:
        return targets.needed_ratio(self.target, self.peer_share)

    @property
    def passed(self) -> bool:
        if self.limit is not None:
            return self.ours <= self.limit
        return targets.passes(self.target, self.lower_bound, self.own_share, self.read_share, self.peer_share)

    @property
    def verdict(self) -> str:
        if self.target == targets.Target() and self.limit is None:
            return "reported"
        return "pass" if self.passed else "MISS"


HEADER = ("| test | quench | peer | ratio | spread | lower 90 % | own roofline | needed | |\n"
          "|---|---|---|---|---|---|---|---|---|\n")


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def line(cell: Cell) -> str:
    needed = "-" if cell.needed is None else f"{cell.needed:.2f}"
    if cell.limit is not None:
        needed = f"at most {cell.limit:.4g} {cell.unit}"
    if cell.target.read_share is not None:
        needed += f", reads {percent(cell.target.read_share)}"
    spread = f"{min(cell.ratios):.2f} to {max(cell.ratios):.2f}"
    return (f"| {cell.test} | {cell.ours:.4g} {cell.unit} | {cell.peer:.4g} {cell.unit} | {cell.ratio:.2f} | {spread} | "
            f"{cell.lower_bound:.2f} | {percent(cell.own_share)} | {needed} | {cell.verdict} |\n")


def table(cells: list[Cell]) -> str:
    return HEADER + "".join(line(cell) for cell in cells)
