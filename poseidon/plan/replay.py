"""Times a pipeline by replaying its operations one by one: plain Python that shares no code with the simulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.schedule import Order


@dataclass(frozen=True)
class PlainTimes:
    """Milliseconds: forward and backward of [stage][chunk], the others of [stage]."""

    forward_ms: Sequence[Sequence[float]]
    backward_ms: Sequence[Sequence[float]]
    send_forward_ms: Sequence[float]
    send_backward_ms: Sequence[float]
    all_reduce_ms: Sequence[float]


class _Replay:
    """One iteration, operation by operation; virtual stage c x N + s is chunk c of stage s.

    Activations go up the virtual stages, gradients down. `ends[kind][virtual stage][micro-batch]` is NaN until known.
    """

    def __init__(self, order: Order, times: PlainTimes) -> None:
        self.times = times
        self.orders = order.stages
        self.num_stages, self.num_virtual = order.num_stages, order.num_stages * order.num_chunks
        rows = [[math.nan] * order.num_micro_batches for _ in range(self.num_virtual)]
        self.ends = {"F": rows, "B": [row.copy() for row in rows]}
        self.position = [0] * self.num_stages
        self.clock = [0.0] * self.num_stages

    def advance(self, stage: int) -> None:
        """Runs a stage as far as its inputs are there."""
        order, forward_ms, backward_ms = self.orders[stage], self.times.forward_ms[stage], self.times.backward_ms[stage]
        clock, position = self.clock[stage], self.position[stage]
        while position < len(order):
            action = order[position]
            virtual = action.chunk * self.num_stages + stage
            ready = self._ready(action.kind, stage, virtual, action.microbatch)
            if math.isnan(ready):
                break
            duration = forward_ms if action.kind == "F" else backward_ms
            clock = max(clock, ready) + duration[action.chunk]
            self.ends[action.kind][virtual][action.microbatch] = clock
            position += 1
        self.clock[stage], self.position[stage] = clock, position

    def _ready(self, kind: str, stage: int, virtual: int, microbatch: int) -> float:
        """When the input of an operation is there."""
        if kind == "F":
            sent_ms = self.times.send_forward_ms[stage - 1]
            return self.ends["F"][virtual - 1][microbatch] + sent_ms if virtual else 0.0
        if virtual == self.num_virtual - 1:
            return self.ends["F"][virtual][microbatch]
        sent_ms = self.times.send_backward_ms[(stage + 1) % self.num_stages]
        return self.ends["B"][virtual + 1][microbatch] + sent_ms


def replayed_time_ms(order: Order, times: PlainTimes) -> float:
    """The iteration time: every stage runs its operations in order, each as soon as its input is there.

    Shares no code with the simulator. Infinite where the stages wait for each other forever.
    """
    replay = _Replay(order, times)
    done, total = -1, sum(map(len, replay.orders))
    while done < total:
        before = done
        for stage in (*range(order.num_stages), *reversed(range(order.num_stages))):
            replay.advance(stage)
        done = sum(replay.position)
        if done == before:
            return math.inf
    return max(end + extra for end, extra in zip(replay.clock, times.all_reduce_ms, strict=True))
