"""An order's operations as arrays, numbered stage by stage, with what each of them waits for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import KINDS, Action, Order, Placement, check_order
from poseidon.schedule.placement import place_of, virtual_stage

Indices = NDArray[np.int32]

F, B, I, W = range(len(KINDS))  # noqa: E741
NONE = -1
"""In place of an operation: there is none."""


@dataclass(frozen=True, eq=False)
class Operations:
    """Stage s runs operations starts[s] .. starts[s + 1] - 1 in this order; other arrays have an entry for each."""

    num_stages: int
    num_chunks: int
    placement: Placement
    starts: Indices
    stage: Indices
    kind: Indices
    chunk: Indices
    microbatch: Indices
    previous: Indices
    """The operation before it on its stage, or NONE."""
    sender: Indices
    """The operation whose activation or gradient it receives over a link, or NONE."""

    @property
    def num_kinds(self) -> int:
        """2 (F and B), or 4 if some backward is split into I and W."""
        return len(KINDS) if self.kind.max() > B else B + 1

    @property
    def num_links(self) -> int:
        """One forward and one backward link for each stage."""
        return 2 * self.num_stages

    def places(self) -> Indices:
        """[virtual stage]: the stage that runs it."""
        virtuals = range(self.num_stages * self.num_chunks)
        stages = [place_of(self.placement, self.num_stages, virtual)[0] for virtual in virtuals]
        return np.array(stages, dtype=np.int32)


def collect_operations(order: Order) -> Operations:
    """The operations of an order; ValueError names what is wrong with one that cannot be run.

    What a stage hands over to itself is not received: it is there by the stage's order. So it is with the gradient of
    the last virtual stage, and with both hand-overs where a V turns round.
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
    virtual = virtual_stages(order.placement, num_stages, stage, chunk)
    places = np.full((len(KINDS), num_stages * order.num_chunks, order.num_micro_batches), NONE, dtype=np.int32)
    places[kind, virtual, microbatch] = np.arange(len(kind), dtype=np.int32)
    if np.count_nonzero(places != NONE) != len(kind) or not _is_complete(places):
        return None
    senders = _senders(places)
    if order.placement == "v" and not _hand_over(senders, places, num_stages):
        return None
    previous = np.arange(-1, len(kind) - 1, dtype=np.int32)
    previous[starts[:-1]] = NONE
    return Operations(
        num_stages=num_stages,
        num_chunks=order.num_chunks,
        placement=order.placement,
        starts=starts,
        stage=stage,
        kind=kind,
        chunk=chunk,
        microbatch=microbatch,
        previous=previous,
        sender=senders[kind, virtual, microbatch],
    )


def virtual_stages(placement: Placement, num_stages: int, stages: Indices, chunks: Indices) -> Indices:
    """The virtual stage of each (stage, chunk)."""
    num_chunks = int(chunks.max(initial=0)) + 1
    table = [[virtual_stage(placement, num_stages, s, c) for c in range(num_chunks)] for s in range(num_stages)]
    return np.array(table, dtype=np.int32)[stages, chunks]


def _hand_over(senders: Indices, places: Indices, num_stages: int) -> bool:
    """Takes away what a stage of a V hands over to itself; False if it wants something before it has made it."""
    for last in range(num_stages - 1, places.shape[1] - 1, num_stages):
        for kind, virtual in ((F, last + 1), (B, last), (I, last)):
            if (senders[kind, virtual] > places[kind, virtual])[places[kind, virtual] != NONE].any():
                return False
            senders[kind, virtual] = NONE
    return True


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
