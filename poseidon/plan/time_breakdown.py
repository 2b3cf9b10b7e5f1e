"""Where the time of an iteration goes, in four parts that add up to it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poseidon.plan.plan import Pipeline
from poseidon.plan.timing import critical_path_shares, pipeline_timeline
from poseidon.simulate import AllReduceStep, OperationStep, Step, Timeline, TransferStep

SAME = 1e-9
"""Stages whose work differs by less than this fraction have the same; it is a sum of many durations."""


@dataclass(frozen=True)
class TimeBreakdown:
    """The iteration time as its busiest stage spends it.

    While that stage does not compute, the critical path says what it waits for. `CriticalPathShares` splits the path
    itself, which knows no bubble: it always runs through some operation, message or all-reduce.
    """

    busiest: int
    """The stage with the most work."""
    compute_ms: float
    """Its forwards and backwards."""
    transfers_ms: float
    """Waits while the critical path follows a message between stages: the transfers that nothing hides."""
    bubble_ms: float
    """Waits while the critical path runs through other stages: filling and draining the pipeline, uneven stages."""
    all_reduce_ms: float
    """Waits while the critical path is in a gradient all-reduce."""

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """Compute, transfers, bubble, all-reduce: their sum (`math.fsum`) is the iteration time."""
        return (self.compute_ms, self.transfers_ms, self.bubble_ms, self.all_reduce_ms)


PART_NAMES = ("compute", "transfers", "bubble", "all-reduce")
"""What `TimeBreakdown.parts` are called."""


def pipeline_breakdown(pipeline: Pipeline) -> TimeBreakdown:
    """The breakdown of a planned pipeline; ValueError where its schedule refuses its shape."""
    return time_breakdown(pipeline_timeline(pipeline))


def time_breakdown(timeline: Timeline) -> TimeBreakdown:
    """The breakdown of a simulated iteration.

    Of several stages with the most work the one counts that the critical path spends most time on, as in the line that
    says what limits a plan.
    """
    busiest = _busiest(timeline)
    computing = _computing(timeline, busiest)
    waits: dict[type[Step], list[float]] = {TransferStep: [], AllReduceStep: []}
    for step in timeline.critical_path:
        if not isinstance(step, OperationStep):
            waits[type(step)] += _not_covered(step, computing)
    compute_ms = math.fsum(bound for start, end in computing for bound in (end, -start))
    transfers_ms, all_reduce_ms = math.fsum(waits[TransferStep]), math.fsum(waits[AllReduceStep])
    # What is left is worked out from the others as they are rounded, so that the four add up.
    bubble_ms = math.fsum((timeline.iteration_time_ms, -compute_ms, -transfers_ms, -all_reduce_ms))
    return TimeBreakdown(busiest, compute_ms, transfers_ms, max(0.0, bubble_ms), all_reduce_ms)


def _busiest(timeline: Timeline) -> int:
    work = [stage.compute_ms for stage in timeline.stages]
    alike = [stage for stage, work_ms in enumerate(work) if work_ms >= max(work) * (1 - SAME)]
    on_path = critical_path_shares(timeline).stages
    return max(alike, key=lambda stage: (on_path[stage], -stage))


Interval = tuple[float, float]


def _computing(timeline: Timeline, stage: int) -> list[Interval]:
    """When a stage computes, in order."""
    first = sum(map(len, timeline.order.stages[:stage]))
    end = first + len(timeline.order.stages[stage])
    return list(zip(timeline.start_ms[first:end].tolist(), timeline.end_ms[first:end].tolist(), strict=True))


def _not_covered(step: Step, computing: Sequence[Interval]) -> Iterator[float]:
    """The length of a step that no interval covers, as terms that add up to it."""
    yield step.end_ms
    yield -step.start_ms
    for start, end in computing[bisect_right(computing, step.start_ms, key=lambda interval: interval[1]) :]:
        if start >= step.end_ms:
            return
        yield max(start, step.start_ms)
        yield -min(end, step.end_ms)
