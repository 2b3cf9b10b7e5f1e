"""The graph of an order whose transfers block: the stages stand still while they send and receive.

Between two batches of operations (`batches`) a stage sends what the one before has made and receives what the one
after takes, and goes on when all of it is done. docs/schedules.md says what exactly blocks, and where that comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from poseidon.schedule import Order
from poseidon.simulate._longest_path import LongestPath
from poseidon.simulate.batches import Batches, Message, batches_of, messages_of
from poseidon.simulate.graph import Weights, stage_durations
from poseidon.simulate.listing import FIRST, NOTHING, Listing, list_operations, slots_of
from poseidon.simulate.operations import NONE, Operations, collect_operations, refusal
from poseidon.simulate.stage_times import StageTimes

MAX_WAITS = 3
"""Waits of a deadlock that are written out."""


@dataclass(frozen=True, eq=False)
class BlockingGraph:
    """Nodes: all operations (numbered as in `Operations`), then a transfer for each message, then joins.

    A node starts when both of `waits[node]` have ended (NONE: nothing); a join takes no time. `ends[stage]` is the node
    after which a stage has nothing left to do but its all-reduce.
    """

    order: Order
    operations: Operations
    messages: tuple[Message, ...]
    waits: tuple[tuple[int, int], ...]
    ends: tuple[int, ...]
    listing: Listing
    kernel: LongestPath

    @property
    def num_stages(self) -> int:
        """Number of pipeline stages."""
        return self.operations.num_stages

    def weights(self, times: StageTimes) -> Weights:
        """The kernel's weights: durations of operations, of transfers and of joins, for one wait and for two."""
        durations = stage_durations(self.operations, times)
        transfers = np.concatenate([times.send_forward_ms, times.send_backward_ms])
        once = np.concatenate([durations, transfers, [0.0]])
        return Weights(np.concatenate([once, once]), np.zeros(1), times.all_reduce_ms)


def build_blocking_graph(order: Order) -> BlockingGraph:
    """The graph; ValueError for an order that cannot be run, or that cannot be run with blocking transfers."""
    operations = collect_operations(order)
    overlapped = list_operations(operations)
    if overlapped is None:
        raise refusal(order)
    slots = slots_of(operations)
    messages = messages_of(operations, overlapped.link[slots])
    nodes = _Nodes(operations, batches_of(operations), messages)
    entries = _sorted(nodes.waits)
    if len(entries) < len(nodes.waits):
        raise ValueError(_deadlock(order, nodes, set(entries)))
    num_durations = len(overlapped.link)
    kinds = [*slots.tolist(), *(num_durations + message.link for message in messages)]
    kinds += [num_durations + operations.num_links] * (len(nodes.waits) - len(kinds))
    listing = _listing(entries, nodes, kinds, num_durations + operations.num_links + 1)
    arrays = (listing.previous, listing.sender, listing.slot, listing.link, listing.last)
    kernel = LongestPath(*arrays, listing.num_links)
    return BlockingGraph(order, operations, messages, tuple(nodes.waits), tuple(nodes.ends), listing, kernel)


@dataclass(eq=False)
class _Nodes:
    """Finds out what each node waits for.

    A transfer starts when both its stages are there. What a stage sends between two batches goes out one after the
    other, as they share its link; what it receives comes in meanwhile. But with one chunk a stage that sends to one
    neighbour and receives from the other sends first and receives then.
    """

    operations: Operations
    batches: Batches
    messages: tuple[Message, ...]
    waits: list[tuple[int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.num_operations = len(self.operations.stage)
        self.num_chunks = self.operations.num_chunks
        self.sent: list[list[int]] = [[] for _ in self.batches.operations]
        self.received: list[list[int]] = [[] for _ in self.batches.operations]
        for number, message in enumerate(self.messages):
            self.sent[self.batches.batch_of[message.sender]].append(self.num_operations + number)
            self.received[self.batches.batch_of[message.receiver]].append(self.num_operations + number)
        self.waits = [(NONE, NONE)] * (self.num_operations + len(self.messages))
        for stage, first in enumerate(self.batches.starts[:-1]):
            before = NONE
            for batch in range(first, self.batches.starts[stage + 1]):
                before = self._run(batch, before, self.sent[batch - 1] if batch > first else [])
            self.ends.append(self._after(before, self.sent[batch]))

    def _run(self, batch: int, before: int, sends: list[int]) -> int:
        """Batch `batch` after node `before` and its stage's `sends`; returns its last operation."""
        receives = self.received[batch]
        self._meet(before, sends if self.num_chunks == 1 else [], receives)
        first, *others = self.batches.operations[batch]
        entry = self._after(before, [*sends, *receives])
        self.waits[first] = (entry, NONE)
        for previous, number in zip([first, *others], others, strict=False):
            self.waits[number] = (previous, NONE)
        last = self.batches.operations[batch][-1]
        after = last
        for transfer in self.sent[batch]:
            self.waits[transfer] = (after, self.waits[transfer][1])
            after = transfer
        return last

    def _meet(self, before: int, sends: list[int], receives: list[int]) -> None:
        """Lets the transfers that a stage receives wait for the stage, and for `sends` to another neighbour."""
        for transfer in receives:
            message = self._message(transfer)
            if message.from_stage == message.to_stage:
                continue  # the hop of a pipeline with a single stage
            apart = [send for send in sends if self._message(send).to_stage != message.from_stage]
            self.waits[transfer] = (self.waits[transfer][0], apart[0] if apart else before)

    def _message(self, transfer: int) -> Message:
        return self.messages[transfer - self.num_operations]

    def _after(self, before: int, transfers: list[int]) -> int:
        """A node that ends when `before` and all transfers have; joins two at a time."""
        node = before
        for transfer in transfers:
            if node == NONE:
                node = transfer
            else:
                self.waits.append((node, transfer))
                node = len(self.waits) - 1
        return node


def _sorted(waits: list[tuple[int, int]]) -> list[int]:
    """The nodes, each after what it waits for; those in or behind a circle are left out."""
    followers: list[list[int]] = [[] for _ in waits]
    missing = [0] * len(waits)
    for node, pair in enumerate(waits):
        for other in pair:
            if other != NONE:
                followers[other].append(node)
                missing[node] += 1
    ready = [node for node, count in enumerate(missing) if count == 0]
    for node in ready:
        for follower in followers[node]:
            missing[follower] -= 1
            if missing[follower] == 0:
                ready.append(follower)
    return ready


def _listing(entries: list[int], nodes: _Nodes, kinds: list[int], num_kinds: int) -> Listing:
    """The kernel's arrays; slots are doubled: first those of nodes with at most one wait, then those with two."""
    cells = np.empty(len(entries) + 1, dtype=np.int32)
    cells[entries] = np.arange(FIRST, FIRST + len(entries), dtype=np.int32)
    cells[NONE] = NOTHING
    pairs = np.array(nodes.waits, dtype=np.int32)[entries]
    # One wait may stand in either place; the kernel wants it in the first.
    alone = pairs[:, 0] == NONE
    pairs[alone] = pairs[alone][:, ::-1]
    twice = pairs[:, 1] != NONE
    slot = np.array(kinds, dtype=np.int32)[entries] + num_kinds * twice
    link = np.repeat(np.array([-1, 0], dtype=np.int32), num_kinds)
    return Listing(
        entries=np.array(entries, dtype=np.int32),
        previous=np.ascontiguousarray(cells[pairs[:, 0]]),
        sender=np.ascontiguousarray(cells[pairs[:, 1]]),
        slot=slot.astype(np.int32),
        link=link,
        last=cells[np.array(nodes.ends, dtype=np.int32)],
        num_links=1,
    )


def _deadlock(order: Order, nodes: _Nodes, done: set[int]) -> str:
    """Who waits for whom, for an order whose stages cannot meet."""
    waiting = list(_stuck(order, nodes, done))
    more = f" (and {len(waiting) - MAX_WAITS} more)" if len(waiting) > MAX_WAITS else ""
    return f"with blocking transfers the stages wait for each other: {'; '.join(waiting[:MAX_WAITS])}{more}"


def _stuck(order: Order, nodes: _Nodes, done: set[int]) -> Iterator[str]:
    operations = nodes.operations
    for number, message in enumerate(nodes.messages):
        node = len(operations.stage) + number
        sender, receiver = message.from_stage, message.to_stage
        action = order.stages[sender][message.sender - int(operations.starts[sender])].operation(order.num_chunks)
        there = [other == NONE or other in done for other in nodes.waits[node]]
        if node not in done and there == [True, False]:
            yield f"stage {sender} has {action} to send, but stage {receiver} is not there"
        if node not in done and there == [False, True]:
            yield f"stage {receiver} is there to receive {action}, but stage {sender} has not made it"
