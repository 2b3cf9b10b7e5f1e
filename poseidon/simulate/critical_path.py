"""The chain of operations and transfers that sets the iteration time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import Action, Order
from poseidon.simulate.operations import NONE, Operations


@dataclass(frozen=True)
class OperationStep:
    """The path runs through an operation."""

    stage: int
    action: Action
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class TransferStep:
    """The path follows the activation or gradient that `action` of `stage` sends to `to_stage`."""

    stage: int
    to_stage: int
    action: Action
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class AllReduceStep:
    """The path ends with the all-reduce of a stage."""

    stage: int
    start_ms: float
    end_ms: float


Step = OperationStep | TransferStep | AllReduceStep


def critical_path(
    order: Order,
    operations: Operations,
    start_ms: NDArray[np.float64],
    end_ms: NDArray[np.float64],
    all_reduce_ms: NDArray[np.float64],
) -> tuple[Step, ...]:
    """A longest path, from the iteration's start to its end.

    Of several stages that end last it is the first one's; where it may stay on its stage or follow a message, it stays.
    `start_ms` and `end_ms` are those of a simulation, so each operation starts exactly when its previous one ends or
    when its message arrives.
    """
    lasts = operations.starts[1:] - 1
    stage = int(np.argmax(end_ms[lasts] + all_reduce_ms))
    number = int(lasts[stage])
    steps = list(_backwards(order, operations, start_ms, end_ms, number))[::-1]
    if all_reduce_ms[stage] > 0:
        end = float(end_ms[number])
        steps.append(AllReduceStep(stage, end, end + float(all_reduce_ms[stage])))
    return tuple(steps)


def _backwards(
    order: Order, operations: Operations, start_ms: NDArray[np.float64], end_ms: NDArray[np.float64], number: int
) -> Iterator[Step]:
    """The steps from operation `number` back to one that waits for nothing."""
    while number != NONE:
        stage, start = int(operations.stage[number]), float(start_ms[number])
        yield OperationStep(stage, _action(order, operations, number), start, float(end_ms[number]))
        previous, sender = int(operations.previous[number]), int(operations.sender[number])
        if sender == NONE or (previous != NONE and end_ms[previous] == start):
            number = previous
        else:
            sent, origin = float(end_ms[sender]), int(operations.stage[sender])
            yield TransferStep(origin, stage, _action(order, operations, sender), sent, start)
            number = sender


def _action(order: Order, operations: Operations, number: int) -> Action:
    stage = int(operations.stage[number])
    return order.stages[stage][number - int(operations.starts[stage])]
