"""What the schedules have in common: warm-up forwards, then one backward and one forward in turn, then backwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from poseidon.schedule.action import Action, Kind
from poseidon.schedule.order import Order


@dataclass(frozen=True)
class Shape:
    """What an order is made for: stages, micro-batches, chunks per stage and, for adaptive_1f1b, the links' depths."""

    num_stages: int
    num_micro_batches: int
    num_chunks: int = 1
    depths: tuple[int, ...] = ()


class Schedule(ABC):
    """A pipeline schedule; see `poseidon.schedule.SCHEDULES` for the known ones.

    Stage s runs a number of warm-up forwards, then alternates backward and forward until the forwards are used up,
    then runs the remaining backwards. A schedule says how many warm-up forwards (`_warmup`) and in which sequence of
    chunks and micro-batches (`_sequence`; micro-batches in turn unless overridden). `depths` is for adaptive_1f1b
    alone.
    """

    name: ClassVar[str]
    """The name in files and on the command line."""
    summary: ClassVar[str]
    """One line for people."""

    def check_shape(
        self, num_stages: int, num_micro_batches: int, num_chunks: int = 1, *, depths: Sequence[int] = ()
    ) -> str | None:
        """Why this schedule refuses this shape, in one sentence; None if it accepts it."""
        for name, value in (
            ("num_stages", num_stages),
            ("num_micro_batches", num_micro_batches),
            ("num_chunks", num_chunks),
        ):
            if value < 1:
                return f"{name} must be at least 1, not {value}"
        return self._refusal(Shape(num_stages, num_micro_batches, num_chunks, tuple(depths)))

    def order(
        self, num_stages: int, num_micro_batches: int, num_chunks: int = 1, *, depths: Sequence[int] = ()
    ) -> Order:
        """The order for this shape; ValueError with the reason of `check_shape` if it is refused."""
        shape = self._accepted(num_stages, num_micro_batches, num_chunks, depths)
        forwards, backwards = self._sequence(shape, "F"), self._sequence(shape, "B")
        stages = tuple(_alternate(forwards, backwards, self._warmup(shape, stage)) for stage in range(num_stages))
        return Order(num_stages, num_micro_batches, num_chunks, stages)

    def warmup_forwards(
        self,
        stage: int,
        num_stages: int,
        num_micro_batches: int,
        num_chunks: int = 1,
        *,
        depths: Sequence[int] = (),
    ) -> int:
        """Number of forwards (of chunks, if there are several) that `stage` runs before its first backward."""
        return self._warmup(self._accepted(num_stages, num_micro_batches, num_chunks, depths), stage)

    def in_flight(
        self,
        stage: int,
        num_stages: int,
        num_micro_batches: int,
        num_chunks: int = 1,
        *,
        depths: Sequence[int] = (),
    ) -> float:
        """Largest number of micro-batches whose activations `stage` holds at once (chunk activations / num_chunks).

        After the warm-up each forward follows a backward, so the warm-up is the peak; `peak_in_flight` replays any
        order.
        """
        return self.warmup_forwards(stage, num_stages, num_micro_batches, num_chunks, depths=depths) / num_chunks

    def _accepted(self, num_stages: int, num_micro_batches: int, num_chunks: int, depths: Sequence[int]) -> Shape:
        reason = self.check_shape(num_stages, num_micro_batches, num_chunks, depths=depths)
        if reason is not None:
            raise ValueError(reason)
        return Shape(num_stages, num_micro_batches, num_chunks, tuple(depths))

    def _refusal(self, shape: Shape) -> str | None:
        if shape.num_chunks != 1:
            return f"{self.name} runs each stage as one chunk: num_chunks must be 1, not {shape.num_chunks}"
        if shape.depths:
            return f"{self.name} takes no depths: they belong to adaptive_1f1b"
        return None

    def _sequence(self, shape: Shape, kind: Kind) -> tuple[Action, ...]:
        return tuple(Action(kind, microbatch) for microbatch in range(shape.num_micro_batches))

    @abstractmethod
    def _warmup(self, shape: Shape, stage: int) -> int:
        """Forwards of `stage` before its first backward."""


def _alternate(forwards: Sequence[Action], backwards: Sequence[Action], num_warmup: int) -> tuple[Action, ...]:
    """Warm-up forwards, then backward and forward in turn, then the remaining backwards."""
    num_pairs = len(forwards) - num_warmup
    steady = [action for pair in zip(backwards, forwards[num_warmup:], strict=False) for action in pair]
    return (*forwards[:num_warmup], *steady, *backwards[num_pairs:])
