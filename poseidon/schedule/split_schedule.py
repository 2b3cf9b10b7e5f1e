"""What the schedules with split backwards have in common: a list of steps for each stage, and counts by replay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from poseidon.schedule.action import Action
from poseidon.schedule.in_flight import in_flight
from poseidon.schedule.order import Order
from poseidon.schedule.placement import Placement
from poseidon.schedule.schedule import Schedule, Shape


class SplitSchedule(Schedule):
    """A schedule that is simulated but not searched; it says the operations of each stage (`_operations`).

    A backward may be split on some micro-batches only. Warm-up and in-flight counts are those of the order itself.
    """

    placement: ClassVar[Placement] = "loop"
    """How the chunks run through the stages."""

    def order(
        self, num_stages: int, num_micro_batches: int, num_chunks: int = 1, *, depths: Sequence[int] = ()
    ) -> Order:
        """The order for this shape; ValueError with the reason of `check_shape` if it is refused."""
        return _order(self, self._accepted(num_stages, num_micro_batches, num_chunks, depths))

    def in_flight(
        self,
        stage: int,
        num_stages: int,
        num_micro_batches: int,
        num_chunks: int = 1,
        *,
        depths: Sequence[int] = (),
    ) -> float:
        """Largest number of micro-batches whose activations `stage` holds at once (chunk activations / num_chunks)."""
        return in_flight(self.order(num_stages, num_micro_batches, num_chunks, depths=depths))[stage]

    def _warmup(self, shape: Shape, stage: int) -> int:
        return _order(self, shape).warmup_forwards(stage)

    @abstractmethod
    def _operations(self, shape: Shape, stage: int) -> tuple[Action, ...]:
        """What `stage` runs, in order."""


@lru_cache(maxsize=8)
def _order(schedule: SplitSchedule, shape: Shape) -> Order:
    stages = tuple(schedule._operations(shape, stage) for stage in range(shape.num_stages))
    return Order(shape.num_stages, shape.num_micro_batches, shape.num_chunks, stages, schedule.placement)
