"""Puts operations into a list that one pass from front to back can evaluate: the kernel's view of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.simulate._levels import find_levels
from poseidon.simulate.operations import NONE, B, F, I, Indices, Operations, virtual_stages

CHAINED, NOTHING, FIRST = 0, 1, 2
"""Cells of the kernel; ``_longest_path.pxd`` explains them."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The kernel's arrays, as ``_longest_path.pxd`` describes them.

    `entries[i]` is the number of the list's i-th operation in `Operations`.
    """

    entries: Indices
    previous: Indices
    sender: Indices
    slot: Indices
    link: Indices
    last: Indices
    num_links: int


def list_operations(operations: Operations) -> Listing | None:
    """The list, sorted by levels; None if the stages wait for each other in a circle.

    Operations of one level are independent, so the processor overlaps them.
    """
    previous, sender, chained = operations.previous, operations.sender, _chained(operations)
    levels = np.empty_like(previous)
    if find_levels(previous, sender, chained.astype(np.int32), levels) < len(levels):
        return None
    entries = np.argsort(levels, kind="stable").astype(np.int32)
    cells = np.empty_like(entries)
    cells[entries] = np.arange(FIRST, FIRST + len(entries), dtype=np.int32)
    previous_cells = np.where(previous == NONE, NOTHING, cells[previous])
    sender_cells = np.where(chained, CHAINED, np.where(sender == NONE, NOTHING, cells[sender]))
    slots = slots_of(operations)
    return Listing(
        entries=entries,
        previous=previous_cells[entries].astype(np.int32),
        sender=sender_cells[entries].astype(np.int32),
        slot=slots[entries].astype(np.int32),
        link=_links(operations),
        last=cells[operations.starts[1:] - 1],
        num_links=operations.num_links,
    )


def _chained(operations: Operations) -> NDArray[np.bool_]:
    """Which operations the list puts right behind their previous one, whose end the kernel then has in a register.

    It does so with those that receive nothing, behind one that receives something (or anywhere, if there is but one
    stage). A longer run of them, as in GPipe, would keep the processor from overlapping it with other stages.
    """
    receives_nothing: NDArray[np.bool_] = (operations.sender == NONE) & (operations.previous != NONE)
    if operations.num_stages == 1:
        return receives_nothing
    previous_receives: NDArray[np.bool_] = operations.sender[operations.previous] != NONE
    return receives_nothing & previous_receives


def slots_of(operations: Operations) -> Indices:
    """[operation]: its slot, (kind, chunk, stage) in C order."""
    return (operations.kind * operations.num_chunks + operations.chunk) * operations.num_stages + operations.stage


def _links(operations: Operations) -> Indices:
    """[slot]: the link over which operations of a slot receive, or -1."""
    num_stages, num_chunks = operations.num_stages, operations.num_chunks
    by_virtual = np.full((operations.num_kinds, num_chunks * num_stages), -1, dtype=np.int32)
    up, down = virtual_links(operations)
    by_virtual[F, 1:] = up
    for kind in (B, I)[: operations.num_kinds - 1]:
        by_virtual[kind, :-1] = down
    chunks, stages = np.divmod(np.arange(num_chunks * num_stages, dtype=np.int32), np.int32(num_stages))
    return by_virtual[:, virtual_stages(operations.placement, num_stages, stages, chunks)].ravel()


def virtual_links(operations: Operations) -> tuple[Indices, Indices]:
    """For each two successive virtual stages the link of activations, and that of gradients; -1 within a stage.

    A message to the next stage takes the sender's forward link, as does the hop from the last stage to the first one's
    next chunk; a message to the previous stage the backward link, as does the hop back. In a V activations of odd
    chunks run from each stage to the previous one.
    """
    stages, num_stages = operations.places(), operations.num_stages
    senders, receivers = stages[:-1], stages[1:]
    if operations.placement == "loop":
        return senders, (num_stages + receivers).astype(np.int32)
    turned, same = senders > receivers, senders == receivers
    up = np.where(same, -1, senders + num_stages * turned)
    down = np.where(same, -1, receivers + num_stages * ~turned)
    return up.astype(np.int32), down.astype(np.int32)
