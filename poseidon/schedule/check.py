"""Finds every mistake of an order; `draw_order` shows where they are."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.schedule.action import Action, Kind
from poseidon.schedule.deadlock import find_deadlock
from poseidon.schedule.mistake import Cell, MistakeKind, OrderMistake
from poseidon.schedule.order import Order
from poseidon.schedule.replay import replay


def check_order(order: Order) -> tuple[OrderMistake, ...]:
    """All mistakes of an order, stage by stage; () if it can be run.

    Each stage must run every chunk of every micro-batch forward once and backward once (B, or I and later W), the
    backward after the forward. If the stages are right one by one, they may still wait for each other in a circle: a
    deadlock.
    """
    mistakes = [mistake for stage in range(order.num_stages) for mistake in _stage_mistakes(order, stage)]
    if mistakes:
        return tuple(mistakes)
    run = replay(order)
    return () if run.is_complete else (find_deadlock(run),)


def _stage_mistakes(order: Order, stage: int) -> Iterator[OrderMistake]:
    first: dict[Action, int] = {}
    for position, action in enumerate(order.stages[stage]):
        cell, name = Cell(stage, position), action.operation(order.num_chunks)
        if not (0 <= action.microbatch < order.num_micro_batches and 0 <= action.chunk < order.num_chunks):
            yield OrderMistake(MistakeKind.UNKNOWN, (cell,), f"stage {stage} has no operation {name}: {_known(order)}")
        elif action in first:
            cells = (cell, Cell(stage, first[action]))
            yield OrderMistake(MistakeKind.DUPLICATE, cells, f"stage {stage} runs {name} twice")
        else:
            first[action] = position
    for chunk in range(order.num_chunks):
        for microbatch in range(order.num_micro_batches):
            yield from _chunk_mistakes(order, stage, Action("F", microbatch, chunk), first)


def _known(order: Order) -> str:
    known = f"micro-batches are 0 to {order.num_micro_batches - 1}"
    return known if order.num_chunks == 1 else f"{known}, chunks 0 to {order.num_chunks - 1}"


def _chunk_mistakes(order: Order, stage: int, forward: Action, first: dict[Action, int]) -> Iterator[OrderMistake]:
    """Mistakes of one chunk and micro-batch; `first` says where each of the stage's operations stands."""
    present: dict[Kind, int] = {
        kind: first[action]
        for kind in ("F", "B", "I", "W")
        if (action := Action(kind, forward.microbatch, forward.chunk)) in first
    }

    def name(kind: Kind) -> str:
        return Action(kind, forward.microbatch, forward.chunk).operation(order.num_chunks)

    end = Cell(stage, len(order.stages[stage]))
    for kind in _missing(present):
        instead = f" (or {name('I')} and {name('W')})" if kind == "B" else ""
        yield OrderMistake(MistakeKind.MISSING, (end,), f"stage {stage} never runs {name(kind)}{instead}")
    if "B" in present and ("I" in present or "W" in present):
        part: Kind = "I" if "I" in present else "W"
        cells = (Cell(stage, present[part]), Cell(stage, present["B"]))
        message = (
            f"stage {stage} runs both {name('B')} and {name(part)}: a backward is either whole (B) or split (I and W)"
        )
        yield OrderMistake(MistakeKind.MIXED, cells, message)
    backward: Kind
    for backward in ("B", "I"):
        if "F" in present and backward in present and present[backward] < present["F"]:
            cells = (Cell(stage, present[backward]), Cell(stage, present["F"]))
            message = f"stage {stage} runs {name(backward)} before its forward {name('F')}"
            yield OrderMistake(MistakeKind.BACKWARD_FIRST, cells, message)
    if "I" in present and "W" in present and present["W"] < present["I"]:
        cells = (Cell(stage, present["W"]), Cell(stage, present["I"]))
        message = f"stage {stage} runs {name('W')} before its input part {name('I')}"
        yield OrderMistake(MistakeKind.WEIGHT_FIRST, cells, message)


def _missing(present: dict[Kind, int]) -> Iterator[Kind]:
    if "F" not in present:
        yield "F"
    if "B" in present:
        return
    if "I" not in present and "W" not in present:
        yield "B"
    elif "W" not in present:
        yield "W"
    elif "I" not in present:
        yield "I"
