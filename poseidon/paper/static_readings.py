"""Readings of Eq. 1, sum of t_s + (M - 1) x max t_s + DP all-reduce: what t_s holds, and which all-reduce counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poseidon.simulate.stage_times import StageTimes


@dataclass(frozen=True)
class StaticReadings:
    """An iteration (ms) under each reading; stages have one chunk."""

    no_transfers_ms: float
    """t_s without communication, the slowest stage's all-reduce."""
    once_ms: float
    """A boundary's round trip counts for the stage before it (`static_time_ms`)."""
    both_sides_ms: float
    """A boundary's round trip counts for the stages on both sides: both send and receive over it."""
    both_sides_all_reduces_ms: float
    """The same with the all-reduces of all stages added up."""


def static_readings(times: StageTimes, num_micro_batches: int) -> StaticReadings:
    """Eq. 1 of a pipeline under every reading."""
    assert times.num_chunks == 1
    work = times.forward_ms.sum(axis=1) + times.backward_ms.sum(axis=1)
    after = times.send_forward_ms + np.roll(times.send_backward_ms, -1)
    after[-1] = 0.0
    before = np.roll(after, 1)

    def total(per_stage: np.ndarray, all_reduce_ms: float) -> float:
        return float(per_stage.sum() + (num_micro_batches - 1) * per_stage.max() + all_reduce_ms)

    slowest, together = float(times.all_reduce_ms.max()), float(times.all_reduce_ms.sum())
    return StaticReadings(
        total(work, slowest),
        total(work + after, slowest),
        total(work + after + before, slowest),
        total(work + after + before, together),
    )
