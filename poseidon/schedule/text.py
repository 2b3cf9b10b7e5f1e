"""Orders as text, both ways: a stages file's operations (``F0``, ``F0.1``) and PyTorch's lines (``2F0``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from poseidon.schedule.action import Action, parse_operation, parse_staged
from poseidon.schedule.order import Order
from poseidon.schedule.placement import Placement

_OVERLAPPED = re.compile(r"\(([^;()]*);([^;()]*)\)OVERLAP_F_B")
"""PyTorch's cell for a forward and a backward that may run as one: ``(0F3;7B1)OVERLAP_F_B``."""


def order_to_operations(order: Order) -> list[list[str]]:
    """Each stage's operations as a stages file writes them: ``F0``, with several chunks ``F0.1``."""
    return [[action.operation(order.num_chunks) for action in actions] for actions in order.stages]


def order_from_operations(
    operations: Sequence[Sequence[str]], num_micro_batches: int, num_chunks: int = 1, placement: Placement = "loop"
) -> Order:
    """The order that these operations describe; ValueError names the stage and the place of an unreadable one."""
    stages = []
    for stage, texts in enumerate(operations):
        actions = []
        for place, text in enumerate(texts):
            try:
                actions.append(parse_operation(text))
            except ValueError as error:
                raise ValueError(f"stage {stage}, operation {place}: {error}") from None
        stages.append(tuple(actions))
    return Order(len(stages), num_micro_batches, num_chunks, tuple(stages), placement)


def order_to_text(order: Order, separator: str = " ") -> str:
    """One line for each stage in PyTorch's form: ``0F0 0F1 2F0 ...`` (virtual stage, kind, micro-batch).

    With ``separator=","`` the lines are the compute-only CSV that `torch.distributed.pipelining` loads.
    """
    return "".join(
        separator.join(action.staged(stage, order.num_stages, order.placement) for action in actions) + "\n"
        for stage, actions in enumerate(order.stages)
    )


def order_from_text(text: str) -> Order:
    """Reads PyTorch's form: a line for each stage, cells split by spaces or commas, empty cells are bubbles.

    The numbers of micro-batches and chunks are the largest that occur. Where the first line has the last virtual stage
    of a V (2 N - 1 of N lines) the chunks run in a V, else in a loop. A cell ``(0F3;7B1)OVERLAP_F_B`` stands for its
    two operations, one after the other. ValueError names the line and the cell that cannot be read, or that names a
    virtual stage which does not belong to its line.
    """
    lines = [_OVERLAPPED.sub(r"\1 \2", line).replace(",", " ").split() for line in text.strip().splitlines()]
    placement = _placement(lines)
    stages = tuple(_read_line(number, cells, len(lines), placement) for number, cells in enumerate(lines))
    actions = [action for line in stages for action in line]
    if not actions:
        raise ValueError("the text has no actions")
    num_micro_batches = max(action.microbatch for action in actions) + 1
    return Order(len(stages), num_micro_batches, max(action.chunk for action in actions) + 1, stages, placement)


def _placement(lines: Sequence[Sequence[str]]) -> Placement:
    """A V if the first stage also has the last virtual stage; one stage alone is a loop."""
    turned = re.compile(rf"{2 * len(lines) - 1}[FBIW][0-9]+")
    return "v" if len(lines) > 1 and any(turned.fullmatch(cell) for cell in lines[0]) else "loop"


def _read_line(stage: int, cells: Sequence[str], num_stages: int, placement: Placement) -> tuple[Action, ...]:
    actions = []
    for cell in cells:
        try:
            owner, action = parse_staged(cell, num_stages, placement)
        except ValueError as error:
            raise ValueError(f"line {stage + 1}: {error}") from None
        if owner != stage:
            raise ValueError(f"line {stage + 1}: {cell!r} belongs to stage {owner}, but this line is stage {stage}")
        actions.append(action)
    return tuple(actions)
