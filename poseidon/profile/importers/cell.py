"""What importers produce: single numbers with the place they come from, before they become rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from poseidon.inputs.model import LayerType
from poseidon.profile.profile import MeasuredAllReduce, MeasuredTransfer, RowKey

Quantity = Literal["forward_ms", "backward_ms", "weight_bytes", "activation_bytes", "recomputed_bytes"]
QUANTITIES: tuple[Quantity, ...] = ("forward_ms", "backward_ms", "weight_bytes", "activation_bytes")
"""What every row must have."""
Part = LayerType | Literal["embedding", "head"]
"""What a row is for: a layer of one type, the embedding, or the head."""
VOCABULARY: tuple[Part, ...] = ("embedding", "head")


@dataclass(frozen=True)
class Place:
    """Where a number stands: the file's name in errors, and the field in it (empty: the whole file)."""

    file: str
    field: str = ""

    def __str__(self) -> str:
        """The place as messages show it."""
        return f"{self.file}: {self.field}" if self.field else self.file


@dataclass(frozen=True)
class Cell:
    """One number of one row, in the units of its name."""

    part: Part
    at: RowKey
    quantity: Quantity
    value: float
    place: Place
    derived: str = ""
    """The formula that it comes from; empty where the file gives it and only the unit was converted."""

    @property
    def row(self) -> tuple[Part, RowKey]:
        """The row that it belongs to."""
        return (self.part, self.at)


@dataclass(frozen=True)
class Fact:
    """Something that a file says about the whole profile."""

    value: str | int
    place: Place


@dataclass(frozen=True)
class PerSequence:
    """Weights and one sequence's activations of a part at a TP degree, on whatever accelerator.

    Formats that keep memory apart from times give it so; `merge` puts it into every row of that TP degree.
    """

    part: Part
    tp: int
    weight_bytes: float | None
    activation_bytes: float | None
    place: Place
    derived: str

    def cells(self, at: RowKey) -> Iterator[Cell]:
        """Its numbers for one row: activations grow with the micro-batch."""
        if self.weight_bytes is not None:
            yield Cell(self.part, at, "weight_bytes", self.weight_bytes, self.place, self.derived)
        if self.activation_bytes is not None:
            kept = self.activation_bytes * at.micro_batch_size
            yield Cell(self.part, at, "activation_bytes", kept, self.place, self.derived)


@dataclass(frozen=True)
class Reading:
    """What one set of files of one format holds."""

    cells: tuple[Cell, ...] = ()
    per_sequence: tuple[PerSequence, ...] = ()
    transfers: tuple[MeasuredTransfer, ...] = ()
    all_reduce: tuple[MeasuredAllReduce, ...] = ()
    model: tuple[Fact, ...] = ()
    seq_length: tuple[Fact, ...] = ()
    precision: tuple[Fact, ...] = ()
    recompute: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = field(default=())
    """What was derived, and how; what the format has and a profile doesn't."""
    warnings: tuple[str, ...] = field(default=())
    """What looks odd."""

    def joined(self, other: Reading) -> Reading:
        """Both together; equal notes once."""
        return Reading(
            self.cells + other.cells,
            self.per_sequence + other.per_sequence,
            self.transfers + other.transfers,
            self.all_reduce + other.all_reduce,
            self.model + other.model,
            self.seq_length + other.seq_length,
            self.precision + other.precision,
            self.recompute + other.recompute,
            tuple(dict.fromkeys(self.notes + other.notes)),
            tuple(dict.fromkeys(self.warnings + other.warnings)),
        )


def time_cells(part: Part, at: RowKey, forward_ms: float, backward_ms: float, place: Place, how: str) -> Iterator[Cell]:
    """The two times of a row."""
    yield Cell(part, at, "forward_ms", forward_ms, place, how)
    yield Cell(part, at, "backward_ms", backward_ms, place, how)


def byte_cells(part: Part, at: RowKey, weight: float, activation: float, place: Place, how: str) -> Iterator[Cell]:
    """The weights (in the training precision) and the kept activations of a row."""
    yield Cell(part, at, "weight_bytes", weight, place, how)
    yield Cell(part, at, "activation_bytes", activation, place, how)
