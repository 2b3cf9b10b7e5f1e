"""The critical path of a graph whose transfers block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from poseidon.simulate.blocking import BlockingGraph
from poseidon.simulate.critical_path import AllReduceStep, OperationStep, Step, TransferStep
from poseidon.simulate.operations import NONE

Times = NDArray[np.float64]


def node_starts(graph: BlockingGraph, end_ms: Times) -> Times:
    """[node]: when it starts, which is exactly when one of those that it waits for ends."""
    waits = np.array(graph.waits, dtype=np.int32)
    ends = np.append(end_ms, 0.0)  # the last one stands for NONE
    starts: Times = np.maximum(ends[waits[:, 0]], ends[waits[:, 1]])
    return starts


def blocking_path(graph: BlockingGraph, start_ms: Times, end_ms: Times, all_reduce_ms: Times) -> tuple[Step, ...]:
    """A longest path from the iteration's start to its end, as `critical_path` gives it for overlapped transfers.

    Of two waits that end together it follows the first: that on the stage itself.
    """
    ends = end_ms[list(graph.ends)]
    stage = int(np.argmax(ends + all_reduce_ms))
    steps = list(_backwards(graph, start_ms, end_ms, graph.ends[stage]))[::-1]
    if all_reduce_ms[stage] > 0:
        end = float(ends[stage])
        steps.append(AllReduceStep(stage, end, end + float(all_reduce_ms[stage])))
    return tuple(steps)


def _backwards(graph: BlockingGraph, start_ms: Times, end_ms: Times, node: int) -> Iterator[Step]:
    while node != NONE:
        if (step := _step(graph, node, float(start_ms[node]), float(end_ms[node]))) is not None:
            yield step
        waits = [other for other in graph.waits[node] if other != NONE]
        node = next((other for other in waits if end_ms[other] == start_ms[node]), NONE)


def _step(graph: BlockingGraph, node: int, start_ms: float, end_ms: float) -> Step | None:
    """The step of a node; None for a join."""
    operations, number = graph.operations, node - len(graph.operations.stage)
    if number >= len(graph.messages):
        return None
    sender = node if number < 0 else graph.messages[number].sender
    stage = int(operations.stage[sender])
    action = graph.order.stages[stage][sender - int(operations.starts[stage])]
    if number < 0:
        return OperationStep(stage, action, start_ms, end_ms)
    return TransferStep(stage, int(operations.stage[graph.messages[number].receiver]), action, start_ms, end_ms)
