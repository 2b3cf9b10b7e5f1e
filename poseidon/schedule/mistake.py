"""What can be wrong with an order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Cell(NamedTuple):
    """A place in an order: the `position`-th operation of `stage`; one past the end where an operation is missing."""

    stage: int
    position: int


class MistakeKind(StrEnum):
    """The kinds of mistakes, from the most local to the most global."""

    UNKNOWN = "unknown operation"
    DUPLICATE = "duplicate operation"
    MISSING = "missing operation"
    MIXED = "backward both whole and split"
    BACKWARD_FIRST = "backward before its forward"
    WEIGHT_FIRST = "weight part before its input part"
    DEADLOCK = "deadlock"


@dataclass(frozen=True)
class OrderMistake:
    """One mistake: its kind, the cells that it concerns (the wrong one first) and a sentence for people."""

    kind: MistakeKind
    cells: tuple[Cell, ...]
    message: str

    @property
    def stage(self) -> int:
        """The stage of the wrong cell."""
        return self.cells[0].stage

    @property
    def position(self) -> int:
        """The wrong cell's place in its stage's list."""
        return self.cells[0].position

    def __str__(self) -> str:
        """The sentence."""
        return self.message
