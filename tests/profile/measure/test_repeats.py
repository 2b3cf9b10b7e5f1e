from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from poseidon.profile.measure.repeats import Repeats, repeated, timing_of


def series(*values: float) -> Iterator[tuple[float, ...]]:
    return iter([(value,) for value in values])


def test_the_median_and_its_spread() -> None:
    timing = timing_of([10.0, 12.0, 11.0, 10.0, 90.0])
    assert timing.median_ms == 11.0
    assert timing.spread == pytest.approx(1 / 11)
    assert timing.samples == 5


def test_warm_up_runs_do_not_count() -> None:
    runs = series(1000.0, 1000.0, *[5.0] * 10)
    (timing,) = repeated(lambda: next(runs), Repeats(warmups=2, fewest=4))
    assert (timing.median_ms, timing.spread, timing.samples) == (5.0, 0.0, 4)


def test_noise_asks_for_more_samples_up_to_the_limit() -> None:
    noisy = itertools.cycle([(1.0,), (2.0,), (3.0,)])
    (timing,) = repeated(lambda: next(noisy), Repeats(warmups=0, fewest=3, most=30, error_limit=0.01))
    assert timing.samples == 30
    (timing,) = repeated(lambda: next(noisy), Repeats(warmups=0, fewest=3, most=1000, error_limit=0.1))
    assert 3 < timing.samples < 1000
    assert timing.error <= 0.1


def test_every_quantity_must_be_known() -> None:
    runs = zip(itertools.repeat(1.0), itertools.cycle([1.0, 2.0, 3.0]), strict=False)
    steady, noisy = repeated(lambda: next(runs), Repeats(warmups=0, fewest=4, most=20, error_limit=0.01))
    assert steady.samples == noisy.samples == 20


def test_long_runs_stop_after_the_time_limit() -> None:
    runs = itertools.cycle([(400.0,), (600.0,), (800.0,)])
    (timing,) = repeated(lambda: next(runs), Repeats(warmups=0, fewest=2, most=50, error_limit=1e-9, longest_s=3.0))
    assert timing.samples == 6  # after five: 2.8 s
