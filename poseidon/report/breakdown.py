"""Where an iteration's time goes: along the critical path, and on every stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.plan.plan import CriticalPathShares
from poseidon.plan.timing import critical_path_shares
from poseidon.report.messages import Messages
from poseidon.report.simulated import Simulated
from poseidon.simulate import Timeline

Times = NDArray[np.float64]


@dataclass(frozen=True)
class StageParts:
    """How a stage spends the iteration; the four add up to the iteration time (ms)."""

    compute_ms: float
    exposed_transfer_ms: float
    """It stands still while the message that it waits for travels (blocking: while any message of its own does)."""
    bubble_ms: float
    """It stands still for any other reason: a neighbour has not made the message yet, or others end later."""
    all_reduce_ms: float

    @property
    def total_ms(self) -> float:
        """The iteration time."""
        return self.compute_ms + self.exposed_transfer_ms + self.bubble_ms + self.all_reduce_ms


@dataclass(frozen=True)
class Breakdown:
    """The parts of an iteration."""

    path: CriticalPathShares
    """Along the critical path, as parts of 1."""
    stages: tuple[StageParts, ...]
    devices: StageParts
    """The mean over all devices in use."""


def break_down(simulated: Simulated) -> Breakdown:
    """The parts of a simulated iteration."""
    timeline = simulated.timeline
    exposed = _exposed_ms(timeline, simulated.messages)
    stages = tuple(
        StageParts(
            use.compute_ms,
            # A stage without bubble may miss the iteration time by rounding.
            min(waited, use.bubble_ms),
            max(0.0, use.bubble_ms - waited),
            use.all_reduce_ms,
        )
        for use, waited in zip(timeline.stages, exposed, strict=True)
    )
    return Breakdown(critical_path_shares(timeline), stages, _mean(stages, simulated.num_devices))


def _mean(stages: tuple[StageParts, ...], num_devices: tuple[int, ...]) -> StageParts:
    total = sum(num_devices)

    def mean(name: str) -> float:
        whole: float = sum(count * getattr(stage, name) for count, stage in zip(num_devices, stages, strict=True))
        return whole / total

    return StageParts(mean("compute_ms"), mean("exposed_transfer_ms"), mean("bubble_ms"), mean("all_reduce_ms"))


def _exposed_ms(timeline: Timeline, messages: Messages) -> list[float]:
    """[stage]: time in which it stands still because of messages under way."""
    if timeline.transfers == "blocking":
        return [_covered_ms(spans) for spans in _spans_by_stage(timeline, messages)]
    starts, ends = timeline.start_ms, timeline.end_ms
    free = np.concatenate([[0.0], ends[:-1]])
    free[_first_operations(timeline)] = 0.0
    waited = starts[messages.receiver] - free[messages.receiver]
    exposed = np.minimum(waited, messages.arrived_ms - messages.sent_ms)
    by_stage = np.bincount(stage_of(timeline)[messages.receiver], np.maximum(exposed, 0.0), len(timeline.stages))
    totals: list[float] = by_stage.tolist()
    return totals


def stage_of(timeline: Timeline) -> NDArray[np.int64]:
    """[operation]: its stage."""
    return np.repeat(np.arange(len(timeline.stages)), [len(actions) for actions in timeline.order.stages])


def _first_operations(timeline: Timeline) -> NDArray[np.int64]:
    """The number of each stage's first operation."""
    return np.cumsum([0, *(len(actions) for actions in timeline.order.stages[:-1])])


def _spans_by_stage(timeline: Timeline, messages: Messages) -> Iterator[Times]:
    """For each stage the spans (start, end) of what it sends and receives while it stands still."""
    stage = stage_of(timeline)
    spans = np.stack([messages.sent_ms, messages.arrived_ms], axis=1)
    for number in range(len(timeline.stages)):
        yield spans[(stage[messages.sender] == number) | (stage[messages.receiver] == number)]


def _covered_ms(spans: Times) -> float:
    """The length of what at least one span covers."""
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    covered, until = 0.0, 0.0
    for start, end in spans.tolist():
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered
