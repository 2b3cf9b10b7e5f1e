"""An order's operations as arrays, numbered stage by stage, with what each of them waits for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import KINDS, Action, Order, check_order

Indices = NDArray[np.int32]

F, B, I, W = range(len(KINDS))  # noqa: E741
NONE = -1
"""In place of an operation: there is none."""


@dataclass(frozen=True, eq=False)
class Operations:
    """Stage s runs operations starts[s] .. starts[s + 1] - 1 in this order; other arrays have an entry for each."""

    num_stages: int
    num_chunks: int
    starts: Indices
    stage: Indices
    kind: Indices
    chunk: Indices
    microbatch: Indices
    previous: Indices
    """The operation before it on its stage, or NONE."""
    sender: Indices
    """The operation of another virtual stage whose activation or gradient it receives, or NONE."""

    @property
    def num_kinds(self) -> int:
        """2 (F and B), or 4 if some backward is split into I and W."""
        return len(KINDS) if self.kind.max() > B else B + 1

    @property
    def num_links(self) -> int:
        """One forward and one backward link for each stage."""
        return 2 * self.num_stages


def collect_operations(order: Order) -> Operations:
    """The operations of an order; ValueError names what is wrong with one that cannot be run.

    The backward of the last virtual stage receives nothing: it comes after its own forward by the stage's order.
    """
    operations = _collect(order)
    if operations is None:
        raise refusal(order)
    return operations


def refusal(order: Order) -> ValueError:
    """The error for an order that cannot be run: its first mistake, and how many more there are."""
    first, *more = check_order(order)
    return ValueError(f"this order cannot be run: {first}" + (f" (and {len(more)} more mistakes)" if more else ""))


def _collect(order: Order) -> Operations | None:
    """None if some operation is missing, unknown or repeated, or comes before its own forward or input part."""
    num_stages, stages = order.num_stages, order.stages
    lengths = [len(actions) for actions in stages]
    starts = np.cumsum([0, *lengths], dtype=np.int32)
    stage = np.repeat(np.arange(num_stages, dtype=np.int32), lengths)
    kind, chunk, microbatch = _columns([action for actions in stages for action in actions])
    if not (_within(chunk, order.num_chunks) and _within(microbatch, order.num_micro_batches)):
        return None
    virtual = chunk * num_stages + stage
    places = np.full((len(KINDS), num_stages * order.num_chunks, order.num_micro_batches), NONE, dtype=np.int32)
    places[kind, virtual, microbatch] = np.arange(len(kind), dtype=np.int32)
    if np.count_nonzero(places != NONE) != len(kind) or not _is_complete(places):
        return None
    previous = np.arange(-1, len(kind) - 1, dtype=np.int32)
    previous[starts[:-1]] = NONE
    return Operations(
        num_stages=num_stages,
        num_chunks=order.num_chunks,
        starts=starts,
        stage=stage,
        kind=kind,
        chunk=chunk,
        microbatch=microbatch,
        previous=previous,
        sender=_senders(places)[kind, virtual, microbatch],
    )


def _columns(actions: list[Action]) -> tuple[Indices, Indices, Indices]:
    numbers = {kind: number for number, kind in enumerate(KINDS)}
    return (
        np.array([numbers[action.kind] for action in actions], dtype=np.int32),
        np.array([action.chunk for action in actions], dtype=np.int32),
        np.array([action.microbatch for action in actions], dtype=np.int32),
    )


def _within(numbers: Indices, limit: int) -> bool:
    return len(numbers) == 0 or bool(numbers.min() >= 0 and numbers.max() < limit)


def _is_complete(places: Indices) -> bool:
    """Whether each forward is there, and after it its backward: whole, or as input part and later weight part.

    `places[kind, virtual stage, micro-batch]` is the number of an operation, or NONE.
    """
    forward, backward, inputs, weights = places
    whole = (backward > forward) & (inputs == NONE) & (weights == NONE)
    split = (backward == NONE) & (inputs > forward) & (weights > inputs)
    return bool(((forward != NONE) & (whole | split)).all())


def _senders(places: Indices) -> Indices:
    """For each operation, by its place in `places`, the number of the operation from which it receives."""
    gradients = np.maximum(places[B], places[I])
    senders = np.full_like(places, NONE)
    senders[F, 1:] = places[F, :-1]
    senders[B:W, :-1] = gradients[1:]
    return senders
