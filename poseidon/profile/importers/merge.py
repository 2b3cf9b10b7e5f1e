"""Puts the numbers of all files together; the same number given twice with two values is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.limits import MAX_MISTAKES
from poseidon.profile.importers.cell import VOCABULARY, Cell, Fact, Part, Place, Quantity, Reading
from poseidon.profile.profile import RowKey

RowId = tuple[Part, RowKey]
EQUAL = 1e-9
"""Relative difference up to which two files say the same."""


@dataclass(frozen=True)
class Merged:
    """Every row with the numbers that the files give."""

    rows: Mapping[RowId, Mapping[Quantity, Cell]]

    def lacking(self, part: Part, at: RowKey, quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
        """The quantities that a row doesn't have."""
        row = self.rows.get((part, at), {})
        return tuple(quantity for quantity in quantities if quantity not in row)

    @property
    def keys(self) -> tuple[RowKey, ...]:
        """Accelerator, TP and micro-batch size of every row, sorted."""
        found = {at for _, at in self.rows}
        return tuple(sorted(found, key=lambda at: (at.accelerator, at.tp, at.micro_batch_size)))

    @property
    def layer_types(self) -> tuple[Part, ...]:
        """The layer types of the rows."""
        return tuple(dict.fromkeys(part for part, _ in self.rows if part not in VOCABULARY))


def merged(reading: Reading) -> Merged:
    """All cells by row; raises InputError that names both places of each number that is given twice."""
    rows: dict[RowId, dict[Quantity, Cell]] = {}
    mistakes: list[Mistake] = []
    for cell in _all_cells(reading):
        row = rows.setdefault(cell.row, {})
        first = row.setdefault(cell.quantity, cell)
        if not isclose(first.value, cell.value, rel_tol=EQUAL, abs_tol=EQUAL):
            mistakes.append(_conflict(first, cell))
    if mistakes:
        raise InputError(mistakes[:MAX_MISTAKES])
    return Merged(rows)


def _all_cells(reading: Reading) -> Iterator[Cell]:
    yield from reading.cells
    keys = dict.fromkeys(cell.at for cell in reading.cells)
    for shared in reading.per_sequence:
        for at in keys:
            if at.tp == shared.tp:
                yield from shared.cells(at)


def _conflict(first: Cell, second: Cell) -> Mistake:
    part, at = second.row
    what = (
        f"{second.quantity} of the {part} row {at}"
        if part in VOCABULARY
        else f"{second.quantity} of {part} layers {at}"
    )
    return Mistake(
        second.place.file,
        second.place.field,
        f"gives {second.value:.6g} for {what}, but {first.place} gives {first.value:.6g}: leave one of them out",
    )


def agreed(name: str, facts: Sequence[Fact], given: Any, option: str) -> Any:
    """What files and options say about `name`: None where nobody does; InputError where they differ."""
    everything = [*facts, Fact(given, Place("", option))] if given is not None else list(facts)
    if not everything:
        return None
    first = everything[0]
    for other in everything[1:]:
        if other.value != first.value:
            message = f"{name} {other.value} does not go with {name} {first.value} of {first.place}"
            raise InputError(Mistake(other.place.file, other.place.field, message))
    return first.value
