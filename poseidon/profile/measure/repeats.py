"""Repeats a measurement until its median is known well enough."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution for each median absolute deviation: 1 / 0.6745."""
MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median of n normal samples, in sigma / sqrt(n) (asymptotic; Kendall and Stuart, vol. 1)."""


@dataclass(frozen=True)
class Repeats:
    """When a measurement may stop."""

    warmups: int = 3
    """Runs before the first that counts: allocator, autotuning, caches."""
    fewest: int = 5
    most: int = 50
    error_limit: float = 0.02
    """Stop when the standard error of every median is at most this part of it."""
    longest_s: float = 30.0
    """Stop after the first run that ends later than this, if `fewest` are done."""


@dataclass(frozen=True)
class Timing:
    """A repeated measurement: its median, and how far the samples lie around it."""

    median_ms: float
    spread: float
    """Median absolute deviation as a part of the median."""
    samples: int

    @property
    def error(self) -> float:
        """Standard error of the median as a part of it."""
        return MEDIAN_ERROR * MAD_TO_SIGMA * self.spread / math.sqrt(self.samples)


def timing_of(samples_ms: Sequence[float]) -> Timing:
    """The samples' median and spread."""
    median = statistics.median(samples_ms)
    deviation = statistics.median(abs(sample - median) for sample in samples_ms)
    return Timing(median, deviation / median if median else 0.0, len(samples_ms))


def repeated(sample: Callable[[], Sequence[float]], repeats: Repeats) -> tuple[Timing, ...]:
    """Timings of the quantities that one run of `sample` yields (in ms).

    The decision to go on depends on the samples alone: ranks that see the same samples stop together.
    """
    for _ in range(repeats.warmups):
        sample()
    runs: list[Sequence[float]] = []
    spent_ms = 0.0
    while True:
        runs.append(sample())
        spent_ms += sum(runs[-1])
        timings = tuple(timing_of(quantity) for quantity in zip(*runs, strict=True))
        if len(runs) < repeats.fewest:
            continue
        known = all(timing.error <= repeats.error_limit for timing in timings)
        if known or len(runs) >= repeats.most or spent_ms > 1e3 * repeats.longest_s:
            return timings
