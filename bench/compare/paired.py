"""Statistics of measurements that two engines made in turn."""
import random
import statistics
from dataclasses import dataclass, field

# A pair during which the machine read memory slower than this share of the run's best is thrown away: something else was running.
PROBE_FLOOR = 0.7
CONFIDENCE = 0.9
RESAMPLES = 10_000


@dataclass
class Pair:
    """One turn of each engine: seconds by test, and what a probe beside them read from memory."""
    ours: dict[str, float]
    peer: dict[str, float]
    probe: float  # bytes a second, the slower of before and after


@dataclass
class Comparison:
    """A test over all kept pairs."""
    test: str
    ours: list[float] = field(default_factory=list)  # seconds
    peer: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """How many times faster we were, pair by pair."""
        return [peer / ours for ours, peer in zip(self.ours, self.peer, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def lower_bound(self) -> float:
        return lower_bound_of_median(self.ratios)


def kept(pairs: list[Pair]) -> list[Pair]:
    if not pairs:
        return []
    best = max(pair.probe for pair in pairs)
    return [pair for pair in pairs if pair.probe >= PROBE_FLOOR * best]


def compare(pairs: list[Pair]) -> list[Comparison]:
    """By test, in the order of the first pair."""
    if not pairs:
        return []
    return [Comparison(test, [p.ours[test] for p in pairs], [p.peer[test] for p in pairs]) for test in pairs[0].ours if test in pairs[0].peer]


def lower_bound_of_median(values: list[float], confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> float:
    """The one-sided bootstrap bound: in `confidence` of the resamples the median is at least this (Efron 1979, percentile method).

    The same values give the same bound.
    """
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int((1 - confidence) * resamples)]
