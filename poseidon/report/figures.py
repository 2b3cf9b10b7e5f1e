"""Bars of the page: parts of a whole, side by side, each with its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poseidon.cost.memory import StageMemory
from poseidon.output.numbers import gigabytes, milliseconds, percent
from poseidon.plan.plan import CriticalPathShares
from poseidon.report.breakdown import StageParts

TIME_PARTS = (
    ("compute", "compute", "compute_ms"),
    ("transfer", "exposed transfer", "exposed_transfer_ms"),
    ("bubble", "bubble", "bubble_ms"),
    ("reduce", "all-reduce", "all_reduce_ms"),
)
"""Class in the style sheet, name for people, field of StageParts."""
MEMORY_PARTS = (
    ("weights", "weights", "weights_bytes"),
    ("gradients", "gradients", "gradients_bytes"),
    ("optimizer", "optimizer state", "optimizer_bytes"),
    ("activations", "activations", "activations_bytes"),
    ("recomputed", "recomputation", "recomputed_bytes"),
    ("reserve", "reserve", "reserve_bytes"),
)


@dataclass(frozen=True)
class Part:
    """One part of a bar: `start` and `width` in percent of the bar's length."""

    style: str
    start: float
    width: float
    words: str


def parts_of(values: Sequence[tuple[str, float, str]], whole: float) -> tuple[Part, ...]:
    """Parts side by side from (style, value, words); parts of nothing are left out."""
    parts, start = [], 0.0
    for style, value, words in values:
        width = 100 * value / whole if whole else 0.0
        if width > 0:
            parts.append(Part(style, round(start, 4), round(width, 4), words))
        start += width
    return tuple(parts)


def time_bar(parts: StageParts) -> tuple[Part, ...]:
    """A stage's time."""
    whole = parts.total_ms
    values = ((style, name, getattr(parts, field)) for style, name, field in TIME_PARTS)
    return parts_of([(style, ms, _time_words(name, ms, whole)) for style, name, ms in values], whole)


def path_bar(shares: CriticalPathShares, iteration_time_ms: float) -> tuple[Part, ...]:
    """The critical path: the operations of each stage, transfers, all-reduce."""
    named = [(f"compute shade{stage % 2}", f"stage {stage}", share) for stage, share in enumerate(shares.stages)]
    named += [("transfer", "exposed transfers", shares.transfers), ("reduce", "all-reduce", shares.all_reduce)]
    words = ((style, share, f"{name}: {_of(share, iteration_time_ms)}") for style, name, share in named)
    return parts_of(list(words), 1.0)


def _of(share: float, whole_ms: float) -> str:
    return f"{milliseconds(share * whole_ms)} ms, {percent(share)}"


def _time_words(name: str, ms: float, whole: float) -> str:
    return f"{name}: {milliseconds(ms)} ms, {percent(ms / whole if whole else 0.0)}"


def memory_bar(memory: StageMemory, scale_bytes: float) -> tuple[Part, ...]:
    """What takes a device's memory; the whole bar is `scale_bytes`."""
    values = ((style, name, float(getattr(memory, field))) for style, name, field in MEMORY_PARTS)
    words = [(style, size, f"{name}: {gigabytes(size)} GB") for style, name, size in values]
    return parts_of(words, scale_bytes)


def gain_bars(gains: Sequence[float | None]) -> Iterator[Part | None]:
    """One bar for each gain on a common scale, which has 0 where the largest loss ends; None for no gain known."""
    known = [gain for gain in gains if gain is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    span = high - low or 1.0
    for gain in gains:
        if gain is None:
            yield None
            continue
        start, width = (min(gain, 0.0) - low) / span, abs(gain) / span
        yield Part("gain" if gain >= 0 else "loss", round(100 * start, 4), round(100 * width, 4), percent(abs(gain)))
