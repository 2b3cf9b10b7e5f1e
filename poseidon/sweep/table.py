"""A sweep as people read it: its runs before they are done, and a summary after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.output.console import NARROW, Columns, rendered, width_of
from poseidon.output.numbers import milliseconds_column, percent, plural
from poseidon.sweep.conduct import SweepResult
from poseidon.sweep.grid import Refusal, Run
from poseidon.sweep.row import Row
from poseidon.sweep.schema import AXIS_PREFIX
from poseidon.sweep.sweep import Axis, Sweep, number_text

MOST_ROWS = 100
"""Rows of a table; all of them are in the Parquet file."""
MOST_REASONS = 10
NOTHING = "-"


def list_text(sweep: Sweep, runs: Sequence[Run], done: Set[str], stream: TextIO) -> str:
    """The runs of a sweep, one a line; `done` has the identities of those that are done."""
    columns = Columns(stream)
    columns.number("run")
    _axis_headers(columns, sweep.axes)
    columns.number("devices", "batch")
    columns.name("model", "policy", "state")
    for run in runs[:MOST_ROWS]:
        if isinstance(run.content, Refusal):
            columns.row(str(run.number), *run.labels, *[NOTHING] * 4, "refused")
            continue
        experiment = run.content
        columns.row(
            str(run.number),
            *run.labels,
            f"{experiment.cluster.num_devices:,}",
            f"{experiment.training.global_batch_size:,}",
            experiment.model.name,
            experiment.search.policy,
            "done" if run.identity in done else "to do",
        )
    refusals = [(run.name, run.content.reason) for run in runs if isinstance(run.content, Refusal)]
    head = Text(f"{sweep.name}: {plural(len(runs), 'run')}", style="bold")
    return rendered([head, Text(""), columns.table(), *_rest(runs), *_reasons(refusals)], stream)


def summary_text(result: SweepResult, stream: TextIO) -> str:
    """All rows in a table, the fastest run, and the reasons where there is no plan."""
    rows = result.rows
    statuses = Counter(row["status"] for row in rows)
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    parts: list[RenderableType] = [
        Text(f"{result.name}: {plural(len(rows), 'run')} ({counts})", style="bold"),
        Text(""),
        _summary_table(result, stream),
        *_rest(rows),
    ]
    planned = [row for row in rows if row.get("tokens_per_second") is not None]
    if planned:
        best = max(planned, key=lambda row: row["tokens_per_second"])
        parts += [Text(""), Text(f"Most tokens/s: {best['name']}, {best['tokens_per_second']:,.0f}.")]
    parts += _reasons([(row["name"], row["reason"]) for row in rows if row["reason"]])
    return rendered(parts, stream)


def _summary_table(result: SweepResult, stream: TextIO) -> Table:
    rows = result.rows[:MOST_ROWS]
    columns = Columns(stream)
    _axis_headers(columns, result.axes)
    wide = width_of(stream) >= NARROW
    columns.number("status", "ms", "gap", "tokens/s", "MFU", *(["bubble"] if wide else []), "DPxTPxPP", "search s")
    schedules = {row.get("schedule") for row in result.rows} - {None}
    if len(schedules) > 1:
        columns.name("schedule")
    times = iter(milliseconds_column([row["iteration_time_ms"] for row in rows if _has_plan(row)]))
    for row in rows:
        labels = [_label(row[AXIS_PREFIX + axis.name]) for axis in result.axes]
        found = row.get("search_s")
        cells = [next(times), *_plan_cells(row, wide=wide)] if _has_plan(row) else [NOTHING] * (6 if wide else 5)
        cells.append(NOTHING if found is None else f"{found:.2f}")
        if len(schedules) > 1:
            cells.append(row.get("schedule") or NOTHING)
        columns.row(*labels, row["status"], *cells)
    return columns.table()


def _has_plan(row: Row) -> bool:
    return row.get("iteration_time_ms") is not None


def _plan_cells(row: Row, *, wide: bool) -> Iterator[str]:
    yield percent(row["gap"])
    yield f"{row['tokens_per_second']:,.0f}"
    yield percent(row["mfu"])
    if wide:
        yield percent(row["bubble_fraction"])
    yield f"{row['dp']}x{'*' if row['tp'] is None else row['tp']}x{row['pp']}"


def _label(value: float | str) -> str:
    return value if isinstance(value, str) else number_text(value)


def _axis_headers(columns: Columns, axes: Sequence[Axis]) -> None:
    for axis in axes:
        (columns.number if axis.is_numeric else columns.name)(axis.title)


def _rest(rows: Sequence[object]) -> list[Text]:
    return [Text(f"... and {len(rows) - MOST_ROWS:,} more")] if len(rows) > MOST_ROWS else []


def _reasons(named: Sequence[tuple[str, str]]) -> list[Text]:
    lines = [Text(f"{name}: {reason}") for name, reason in named[:MOST_REASONS]]
    if len(named) > MOST_REASONS:
        lines.append(Text(f"... and {len(named) - MOST_REASONS:,} more without a plan"))
    return [Text(""), *lines] if lines else []
