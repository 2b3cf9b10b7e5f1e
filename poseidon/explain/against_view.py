"""Two plans side by side, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.explain.difference import Comparison, Differs
from poseidon.explain.rounding import decimals_of, rounded_parts
from poseidon.output.console import Columns, rendered
from poseidon.output.numbers import milliseconds, percent
from poseidon.output.plan_view import limits_line, shape_line
from poseidon.plan import PlannedStage
from poseidon.plan.time_breakdown import PART_NAMES

EQUAL = 1e-9


def comparison_text(comparison: Comparison, names: tuple[str, str], stream: TextIO) -> str:
    """The comparison as text for `stream`; `names` are what the two plans are called (A and B in tables)."""
    return rendered(list(_parts(comparison, names, stream)), stream)


def _parts(comparison: Comparison, names: tuple[str, str], stream: TextIO) -> Iterator[RenderableType]:
    this, other = comparison.this, comparison.other
    for letter, name, pipeline in zip("AB", names, (this, other), strict=True):
        yield Text(f"{letter}: {name}", style="bold")
        yield Text(f"   {shape_line(pipeline)}: {milliseconds(pipeline.iteration_time_ms)} ms an iteration")
    yield Text("")
    yield Text(verdict_line(comparison), style="bold")
    yield Text("")
    yield _time(comparison, stream)
    for title, rows in (("Different inputs", comparison.inputs), ("Different settings", comparison.settings)):
        if rows:
            yield Text("")
            yield _differences(title, rows, stream)
    yield Text("")
    yield _stages(this.stages, other.stages, stream)
    yield Text("")
    for letter, pipeline in (("A", this), ("B", other)):
        yield Text(f"{letter}: {limits_line(pipeline)}")


def verdict_line(comparison: Comparison) -> str:
    """Which plan is faster, by how much, and mostly through what."""
    ms, this_ms = comparison.difference_ms, comparison.this.iteration_time_ms
    if abs(ms) <= EQUAL * this_ms:
        return "Both take the same time."
    word = "more" if ms > 0 else "less"
    share = percent(abs(ms) / this_ms)
    main = comparison.parts_ms[PART_NAMES.index(comparison.main_part)]
    return (
        f"B takes {milliseconds(abs(ms))} ms ({share}) {word}, mostly by {comparison.main_part} "
        f"({'+' if main >= 0 else '-'}{milliseconds(abs(main))} ms)."
    )


def _time(comparison: Comparison, stream: TextIO) -> Table:
    columns = Columns(stream, "Where the time goes, ms")
    columns.name("Part")
    columns.number("A", "B", "B - A")
    times = (comparison.this.iteration_time_ms, comparison.other.iteration_time_ms)
    decimals = min(map(decimals_of, times))
    this = rounded_parts(comparison.this_time.parts, times[0], decimals)
    other = rounded_parts(comparison.other_time.parts, times[1], decimals)
    deltas = rounded_parts(comparison.parts_ms, comparison.difference_ms, decimals, signed=True)
    labels = (
        f"compute (A: stage {comparison.this_time.busiest}, B: stage {comparison.other_time.busiest})",
        *PART_NAMES[1:],
    )
    for row in zip(labels, this, other, deltas, strict=True):
        columns.row(*row)
    totals = [f"{time_ms:,.{decimals}f}" for time_ms in times]
    columns.row("iteration", *totals, f"{comparison.difference_ms:+,.{decimals}f}")
    return columns.table()


def _differences(title: str, rows: Sequence[Differs], stream: TextIO) -> Table:
    columns = Columns(stream, title)
    columns.name("Setting", "A", "B")
    for row in rows:
        columns.row(row.name, row.this, row.other)
    return columns.table()


def _stages(this: Sequence[PlannedStage], other: Sequence[PlannedStage], stream: TextIO) -> Table:
    columns = Columns(stream, "Stages (ms: forward and backward of one micro-batch)")
    columns.number("Stage")
    columns.name("A type")
    columns.number("A DPxTP", "A layers", "A ms")
    columns.name("B type")
    columns.number("B DPxTP", "B layers", "B ms")
    for index, (one, two) in enumerate(zip_longest(this, other)):
        columns.row(str(index), *_stage(one), *_stage(two))
    return columns.table()


def _stage(stage: PlannedStage | None) -> tuple[str, str, str, str]:
    """Type, degrees, layers, and forward and backward of one micro-batch in ms."""
    if stage is None:
        return ("", "", "", "")
    work = sum(stage.forward_ms) + sum(stage.backward_ms)
    return (stage.accelerator, f"{stage.dp}x{stage.tp}", "+".join(map(str, stage.layers)), milliseconds(work))
