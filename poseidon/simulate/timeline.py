"""What a simulation tells: when everything runs, who waits, and which chain of operations sets the iteration time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import Action, Order
from poseidon.simulate.critical_path import Step

Transfers = Literal["overlapped", "blocking"]
"""Whether activations and gradients travel beside the computation, or the stages stand still meanwhile."""


@dataclass(frozen=True)
class TimedOperation:
    """One operation of one stage, with its start and end."""

    stage: int
    action: Action
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class StageUse:
    """How a stage spends the iteration: ``busy_ms + bubble_ms`` is the iteration time."""

    compute_ms: float
    """Time in its operations."""
    all_reduce_ms: float
    """Time in its gradient all-reduce, which follows its last operation."""
    busy_ms: float
    """Compute and all-reduce. Transfers between stages do not count, be they overlapped or blocking."""
    bubble_ms: float
    """The rest, in which the stage waits: for messages, in blocking transfers, or at the end for the slowest stage."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """The simulated iteration.

    `start_ms` and `end_ms` have one entry per operation, stage by stage in each stage's order (read-only).
    `critical_path` runs without a gap from 0 to `iteration_time_ms`.
    """

    order: Order
    iteration_time_ms: float
    start_ms: NDArray[np.float64]
    end_ms: NDArray[np.float64]
    stages: tuple[StageUse, ...]
    critical_path: tuple[Step, ...]
    transfers: Transfers = "overlapped"

    @property
    def bubble_fraction(self) -> float:
        """The part of all stages' time that is bubble: sum of bubble_ms / (stages x iteration time)."""
        total = self.iteration_time_ms * len(self.stages)
        return sum(stage.bubble_ms for stage in self.stages) / total if total > 0 else 0.0

    def operations(self) -> Iterator[TimedOperation]:
        """Every operation with its times, stage by stage in each stage's order."""
        starts, ends = self.start_ms.tolist(), self.end_ms.tolist()
        places = ((stage, action) for stage, actions in enumerate(self.order.stages) for action in actions)
        for (stage, action), start, end in zip(places, starts, ends, strict=True):
            yield TimedOperation(stage, action, start, end)
