"""Names the circle in which the stages of a stuck order wait for each other."""

from __future__ import annotations

from poseidon.schedule.dependency import Place, waits_for
from poseidon.schedule.mistake import Cell, MistakeKind, OrderMistake
from poseidon.schedule.order import Order
from poseidon.schedule.replay import Replay


def find_deadlock(run: Replay) -> OrderMistake:
    """The circle of a replay that got stuck, in an order whose stages are right one by one.

    Every stuck stage's next operation waits for an operation of another stuck stage; following these waits must come
    back.
    """
    order = run.order
    seen: dict[int, int] = {}
    waits: list[tuple[Cell, Place]] = []
    stage = next(stage for stage, steps in enumerate(run.steps) if len(steps) < len(order.stages[stage]))
    while stage not in seen:
        seen[stage] = len(waits)
        position = len(run.steps[stage])
        awaited = _awaited(order, stage, position)
        waits.append((Cell(stage, position), awaited))
        stage = awaited.stage
    circle = waits[seen[stage] :]
    sentences = [_sentence(order, cell, awaited) for cell, awaited in circle]
    message = "the stages wait for each other in a circle: " + "; ".join(sentences)
    return OrderMistake(MistakeKind.DEADLOCK, tuple(cell for cell, _ in circle), message)


def _awaited(order: Order, stage: int, position: int) -> Place:
    """The operation of the order for which the stuck one waits."""
    senders = waits_for(order, stage, order.stages[stage][position])
    return next(place for place in senders if place.action in order.stages[place.stage])


def _sentence(order: Order, cell: Cell, awaited: Place) -> str:
    name = order.stages[cell.stage][cell.position].operation(order.num_chunks)
    other = awaited.action.operation(order.num_chunks)
    return f"stage {cell.stage} waits with {name} for {other} of stage {awaited.stage}"
