"""What a stage runs without talking to others in between, where transfers block."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poseidon.simulate.operations import NONE, B, F, I, Operations


class Message(NamedTuple):
    """An activation or gradient: the operations that make and take it, their stages, and the link that it goes over."""

    sender: int
    receiver: int
    from_stage: int
    to_stage: int
    link: int


@dataclass(frozen=True)
class Batches:
    """The batches of all stages, stage by stage; operations are numbered as in `Operations`.

    Batch k of the list is `operations[k]`; batches `starts[s]` to `starts[s + 1] - 1` are those of stage s.
    """

    operations: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    batch_of: tuple[int, ...]
    """[operation]: its batch."""


def batches_of(operations: Operations) -> Batches:
    """Single operations; with several chunks a forward and the backward right after it are one batch.

    So does Megatron-LM: its plain 1F1B talks after every operation, its interleaved one, in the steady state, after
    every pair (``send_forward_backward_recv_forward_backward``).
    """
    kinds, starts = operations.kind.tolist(), operations.starts.tolist()
    listed: list[tuple[int, ...]] = []
    batch_starts = [0]
    for first, end in pairwise(starts):
        number = first
        while number < end:
            paired = operations.num_chunks > 1 and number + 1 < end
            paired = paired and kinds[number] == F and kinds[number + 1] in (B, I)
            listed.append((number, number + 1) if paired else (number,))
            number += len(listed[-1])
        batch_starts.append(len(listed))
    batch_of = [batch for batch, members in enumerate(listed) for _ in members]
    return Batches(tuple(listed), tuple(batch_starts), tuple(batch_of))


def messages_of(operations: Operations, links: np.ndarray[tuple[int], np.dtype[np.int32]]) -> tuple[Message, ...]:
    """Every message, in the order of their senders; `links` has for each operation the link over which it receives."""
    receivers = np.flatnonzero(operations.sender != NONE)
    receivers = receivers[np.argsort(operations.sender[receivers])]
    senders = operations.sender[receivers]
    columns = (senders, receivers, operations.stage[senders], operations.stage[receivers], links[receivers])
    return tuple(map(Message._make, zip(*(column.tolist() for column in columns), strict=True)))
