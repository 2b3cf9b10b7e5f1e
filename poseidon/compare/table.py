"""A comparison as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.compare.compare import Comparison
from poseidon.compare.entry import Entry, fits, fullest_fraction, static_error, static_ms, table_1_text
from poseidon.output.console import NARROW, Columns, rendered, width_of
from poseidon.output.numbers import milliseconds_column, percent, plural
from poseidon.plan.plan import NoPlan, Pipeline

NOTHING = "-"


def comparison_text(comparison: Comparison, stream: TextIO) -> str:
    """The table, the plans below it, and the reasons where there is none."""
    return rendered(list(_parts(comparison, stream)), stream)


def _parts(comparison: Comparison, stream: TextIO) -> Iterator[RenderableType]:
    experiment = comparison.experiment
    devices = plural(experiment.cluster.num_devices, "device")
    yield Text(f"{experiment.model.name} on {experiment.cluster.name}, {devices}", style="bold")
    yield Text("")
    yield _table(comparison, stream)
    planned = [(entry.name, entry.pipeline) for entry in comparison.entries if entry.pipeline is not None]
    if planned:
        yield Text("")
        yield Text("Stages as (DP,TP,type,layers):")
    for name, pipeline in planned:
        yield _hanging(name, _plan_text(pipeline))
    without = [entry for entry in comparison.entries if entry.pipeline is None]
    if without:
        yield Text("")
    for entry in without:
        yield _hanging(entry.name, entry.reason)


def _hanging(name: str, text: str) -> Table:
    """A name, and a text that stays right of it however many lines it takes."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, min_width=11)
    grid.add_column()
    grid.add_row(name, Text(text))
    return grid


def _table(comparison: Comparison, stream: TextIO) -> Table:
    columns, wide = Columns(stream), width_of(stream) >= NARROW
    columns.name("policy", "status")
    columns.number("ms", "slower", "Eq. 1 ms", *(["Eq. 1 off"] if wide else []), "search s", "memory")
    if wide:
        columns.number("fits", "tokens/s", "bubble", "DPxTPxPP", "micro-batches")
    pipelines = [entry.pipeline for entry in comparison.entries if entry.pipeline is not None]
    times = iter(milliseconds_column([pipeline.iteration_time_ms for pipeline in pipelines]))
    static = iter(milliseconds_column([static_ms(pipeline) for pipeline in pipelines]))
    for entry in comparison.entries:
        pipeline, search = entry.pipeline, entry.search
        seconds = NOTHING if search is None else f"{search.seconds:.2f}"
        if pipeline is None:
            after = [NOTHING] * (6 if wide else 1)
            columns.row(entry.name, _status(entry), *[NOTHING] * (4 if wide else 3), seconds, *after)
            continue
        off = [f"{100 * static_error(pipeline):+.1f} %"] if wide else []
        slower = percent(comparison.slower(entry) or 0.0)
        memory = percent(fullest_fraction(pipeline)) + ("" if fits(pipeline) or wide else " (too much)")
        more = _more(pipeline) if wide else []
        columns.row(entry.name, _status(entry), next(times), slower, next(static), *off, seconds, memory, *more)
    return columns.table()


def _status(entry: Entry) -> str:
    """Also what cut the search short."""
    if entry.search is not None and str(entry.search.termination) == "time limit":
        return f"{entry.status}, time limit"
    if isinstance(entry.answer, NoPlan):
        return "no plan"
    return entry.status


def _more(pipeline: Pipeline) -> list[str]:
    return [
        "yes" if fits(pipeline) else "no",
        f"{pipeline.tokens_per_second:,.0f}",
        percent(pipeline.bubble_fraction),
        f"{'*' if pipeline.dp_differs else pipeline.dp}x{pipeline.tp or '*'}x{pipeline.pp}",
        str(pipeline.num_micro_batches),
    ]


def _plan_text(pipeline: Pipeline) -> str:
    size = "" if pipeline.dp_differs else f" of {pipeline.micro_batch_size}"
    count = plural(pipeline.num_micro_batches, "micro-batch", "micro-batches")
    return f"{table_1_text(pipeline)}; {count}{size}"
