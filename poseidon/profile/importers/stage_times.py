"""Times of embedding, layer and head from the times of whole stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from poseidon.errors import InputError, Mistake
from poseidon.profile.importers.cell import Place

NOISE = 0.25
"""An embedding or head that comes out below 0 by less than this part of a layer counts as 0."""
RESIDUAL = 0.05
"""A stage that is further off the solution than this is reported."""


@dataclass(frozen=True)
class Observation:
    """One stage's pass of one micro-batch, ms."""

    has_embedding: bool
    has_head: bool
    layers: int
    forward_ms: float
    backward_ms: float

    def ms(self, direction: Literal["forward", "backward"]) -> float:
        """One of the two times."""
        return self.forward_ms if direction == "forward" else self.backward_ms


@dataclass(frozen=True)
class Solved:
    """The three times, ms."""

    embedding: float
    layer: float
    head: float
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def solved_times(
    stages: Sequence[Observation], direction: Literal["forward", "backward"], place: Place, embedding_share: float
) -> Solved:
    """Least squares of time = [embedding] + layers x layer + [head]; InputError where stages can't tell them apart."""
    import numpy as np

    rows = [[float(s.has_embedding), float(s.layers), float(s.has_head)] for s in stages]
    times = [s.ms(direction) for s in stages]
    notes: list[str] = []
    if np.linalg.matrix_rank(np.array(rows)) < 3:
        rows = [*rows, [1 - embedding_share, 0.0, -embedding_share]]
        times = [*times, 0.0]
        notes.append(f"embedding = {embedding_share:.0%} of embedding and head together")
    if np.linalg.matrix_rank(np.array(rows)) < 3:
        message = (
            "these stages can't tell a layer from embedding and head: give a second log with another number of layers, "
            "or one with 3 or more pipeline stages and --timing-log-option all"
        )
        raise InputError(Mistake(place.file, place.field, message))
    solution, *_ = np.linalg.lstsq(np.array(rows), np.array(times), rcond=None)
    embedding, layer, head = (float(value) for value in solution)
    fitted = np.array(rows)[: len(stages)] @ solution
    worst = max(
        (abs(float(f) - s.ms(direction)) / max(s.ms(direction), 1e-9) for f, s in zip(fitted, stages, strict=True))
    )
    warnings = (f"{direction}: a stage is {worst:.0%} off what the layers explain",) if worst > RESIDUAL else ()
    if layer <= 0 or min(embedding, head) < -NOISE * layer:
        shown = f"embedding {embedding:.4g}, layer {layer:.4g}, head {head:.4g} ms"
        raise InputError(Mistake(place.file, place.field, f"{direction} times make no sense: {shown}"))
    if min(embedding, head) < -1e-6 * layer:
        notes.append(f"{direction}: an embedding or head of {min(embedding, head):.3g} ms counts as 0")
    return Solved(max(0.0, embedding), layer, max(0.0, head), tuple(notes), warnings)
