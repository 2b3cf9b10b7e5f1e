"""Draws an order as a grid of stages and steps, with the wrong cells marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from poseidon.schedule.mistake import Cell, MistakeKind, OrderMistake
from poseidon.schedule.order import Order
from poseidon.schedule.replay import Replay, replay

_IDLE = "."
_STUCK = "|"


def draw_order(
    order: Order, mistakes: Iterable[OrderMistake] = (), *, first_step: int | None = None, num_steps: int = 24
) -> str:
    """The grid: a row for each stage, a column for each step of unit duration, ``.`` where a stage is idle.

    A wrong cell is drawn ``>B0<`` (a missing operation ``>?<``), a cell that it clashes with ``(F0)``. What a stage
    never gets to run follows after ``|``. At most `num_steps` columns are drawn, from `first_step` (default: so that
    the first mistake is in sight). The mistakes' sentences follow.
    """
    mistakes = tuple(mistakes)
    run = replay(order)
    marks = _marks(mistakes)
    rows = [_row(run, stage, marks) for stage in range(order.num_stages)]
    length = max(map(len, rows), default=0)
    if first_step is None:
        first_step = max(0, _column(run, mistakes[0].cells[0]) - num_steps // 2) if mistakes else 0
    columns = range(first_step, min(first_step + num_steps, length))
    header = ["step", *(str(column) if column < run.num_steps else "" for column in columns)]
    lines = [header]
    for stage, row in enumerate(rows):
        lines.append([f"stage {stage}", *(row[column] if column < len(row) else "" for column in columns)])
    return "\n".join([*_aligned(lines), *(f"{mistake.kind}: {mistake}" for mistake in mistakes)])


def _marks(mistakes: Iterable[OrderMistake]) -> dict[Cell, str]:
    """How the cells of the mistakes are drawn; in a deadlock every cell of the circle is wrong."""
    marks: dict[Cell, str] = {}
    for mistake in mistakes:
        for index, cell in enumerate(mistake.cells):
            if index == 0 or mistake.kind is MistakeKind.DEADLOCK:
                marks[cell] = ">{}<"
            else:
                marks.setdefault(cell, "({})")
    return marks


def _row(run: Replay, stage: int, marks: Mapping[Cell, str]) -> list[str]:
    """All cells of a stage: what it runs in each step, then what it never gets to run."""
    actions, steps = run.order.stages[stage], run.steps[stage]
    names = [
        marks.get(Cell(stage, position), "{}").format(action.operation(run.order.num_chunks))
        for position, action in enumerate(actions)
    ]
    row = [_IDLE] * run.num_steps
    for step, name in zip(steps, names, strict=False):
        row[step] = name
    if len(steps) < len(actions):
        row += [_STUCK, *names[len(steps) :]]
    if missing := marks.get(Cell(stage, len(actions))):
        row += [_STUCK, missing.format("?")]
    return row


def _column(run: Replay, cell: Cell) -> int:
    """The column in which `_row` draws a cell."""
    steps = run.steps[cell.stage]
    if cell.position < len(steps):
        return steps[cell.position]
    return run.num_steps + 1 + cell.position - len(steps)


def _aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        " ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        ).rstrip()
        for line in lines
    ]
