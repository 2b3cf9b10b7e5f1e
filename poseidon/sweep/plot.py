"""The plot of a sweep, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from poseidon.errors import InputError, Mistake
from poseidon.inputs.file_model import nearest, shown
from poseidon.sweep.conduct import SweepResult
from poseidon.sweep.outcome import RunStatus
from poseidon.sweep.row import Row
from poseidon.sweep.schema import AXIS_PREFIX, COLUMNS
from poseidon.sweep.store import PLOT_FILES
from poseidon.sweep.sweep import Axis, Sweep
from poseidon.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMERIC = tuple(
    column.name for column in COLUMNS if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
)
"""The columns that can be plotted."""
WORDS = {
    "tokens_per_second": "tokens/s",
    "iteration_time_ms": "iteration time (ms)",
    "lower_bound_ms": "lower bound (ms)",
    "mfu": "MFU",
    "bubble_fraction": "bubble fraction",
    "search_s": "search (s)",
    "search_nodes": "search nodes",
}
PANEL_INCHES = (6.4, 4.0)
DOTS_PER_INCH = 150
MOST_TICKS = 8
"""More labels would run into each other."""


@dataclass(frozen=True)
class PlotPlan:
    """Which axis goes where, all defaults filled in."""

    x: Axis
    series: tuple[Axis, ...]
    columns: tuple[str, ...]
    log: frozenset[str]
    """Names of the axis and the columns on a logarithmic scale."""


Series = dict[str, dict[str, Row]]
"""Rows by the series' name and the label on the x axis."""


def plot_plan(sweep: Sweep) -> PlotPlan:
    """What the sweep file asks for; raises InputError for a column that can't be plotted."""
    mistakes = []
    for index, name in enumerate(sweep.plot.y):
        if name not in NUMERIC:
            near = nearest(name, NUMERIC)
            hint = f"did you mean {near!r}?" if near else f"accepted: {', '.join(NUMERIC)}"
            mistakes.append(
                Mistake(sweep.source.label, f"plot.y[{index}]", f"{shown(name)} is no numeric column; {hint}")
            )
    if mistakes:
        raise InputError(mistakes)
    by_name = {axis.name: axis for axis in sweep.axes}
    first = next((axis for axis in sweep.axes if axis.is_numeric), sweep.axes[0])
    x = first if sweep.plot.x is None else by_name[sweep.plot.x]
    chosen = tuple(by_name) if sweep.plot.series is None else sweep.plot.series
    series = tuple(by_name[name] for name in chosen if name != x.name)
    return PlotPlan(x, series, sweep.plot.y, frozenset(sweep.plot.log))


def write_plot(plan: PlotPlan, result: SweepResult, directory: Path) -> list[Path]:
    """Draws the rows into `PLOT_FILES`; returns their paths.

    Where several rows share a place, the one with the most tokens/s is drawn. Raises ImportError without matplotlib.
    """
    import matplotlib

    # A fixed salt and no date: the same rows give the same file. Names are names, also those with dollar signs.
    with matplotlib.rc_context({"svg.hashsalt": "poseidon", "text.parse_math": False}):
        return _written(_figure(plan, result), directory)


def _figure(plan: PlotPlan, result: SweepResult) -> Figure:
    from matplotlib.figure import Figure

    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * len(plan.columns), height), layout="constrained")
    series = _series(plan, result.rows)
    for index, column in enumerate(plan.columns, start=1):
        panel = figure.add_subplot(1, len(plan.columns), index)
        (_lines if plan.x.is_numeric else _bars)(panel, plan, series, column)
        _label(panel, plan, column, with_legend=index == 1 and len(series) > 1)
    figure.suptitle(result.name)
    if any(row["status"] != RunStatus.OPTIMAL for rows in series.values() for row in rows.values()):
        figure.supxlabel("hollow: not proven optimal", fontsize="small")
    return figure


def _written(figure: Figure, directory: Path) -> list[Path]:
    paths = [directory / name for name in PLOT_FILES]
    for path in paths:
        kind = path.suffix[1:]
        metadata = {"Date": None} if kind == "svg" else None
        write_whole(path, partial(figure.savefig, format=kind, dpi=DOTS_PER_INCH, metadata=metadata))
    return paths


def _series(plan: PlotPlan, rows: Sequence[Row]) -> Series:
    series: Series = {}
    for row in rows:
        name = ", ".join(_text(row, axis) for axis in plan.series)
        places = series.setdefault(name, {})
        place = _text(row, plan.x)
        speed = row.get("tokens_per_second")
        if speed is not None and speed > (places[place]["tokens_per_second"] if place in places else 0):
            places[place] = row
    return series


def _text(row: Mapping[str, Any], axis: Axis) -> str:
    value = row[AXIS_PREFIX + axis.name]
    return f"{axis.title} {value:g}" if axis.is_numeric else str(value)


def _lines(panel: Axes, plan: PlotPlan, series: Series, column: str) -> None:
    """A line for each series, its points in the order of x; hollow where a plan is not proven optimal."""
    name = AXIS_PREFIX + plan.x.name
    for label, places in series.items():
        rows = sorted((row for row in places.values() if row[column] is not None), key=lambda row: row[name])
        line = panel.plot([row[name] for row in rows], [row[column] for row in rows], label=label)[0]
        for row in rows:
            fill = line.get_color() if row["status"] == RunStatus.OPTIMAL else "white"
            panel.plot(row[name], row[column], "o", color=line.get_color(), markerfacecolor=fill)


def _bars(panel: Axes, plan: PlotPlan, series: Series, column: str) -> None:
    """A group of bars for each label, a bar for each series."""
    labels = [point.label for point in plan.x.points]
    width = 0.8 / max(len(series), 1)
    for index, (name, places) in enumerate(series.items()):
        color = f"C{index}"
        rows = [(place, places[label]) for place, label in enumerate(labels) if label in places]
        rows = [(place, row) for place, row in rows if row[column] is not None]
        x = [place + (index - (len(series) - 1) / 2) * width for place, _ in rows]
        fills = [color if row["status"] == RunStatus.OPTIMAL else "white" for _, row in rows]
        panel.bar(x, [row[column] for _, row in rows], 0.9 * width, color=fills, edgecolor=color, label=name)
    slanted = sum(map(len, labels)) > 40
    panel.set_xticks(range(len(labels)), labels, rotation=30 if slanted else 0, ha="right" if slanted else "center")


def _label(panel: Axes, plan: PlotPlan, column: str, *, with_legend: bool) -> None:
    panel.set_xlabel(plan.x.title)
    panel.set_ylabel(WORDS.get(column, column))
    if plan.x.is_numeric:
        panel.set_xscale("log" if plan.x.name in plan.log else "linear")
        if len(plan.x.points) <= MOST_TICKS:  # the values that were tried, not those that a scale finds round
            labels = [point.label for point in plan.x.points]
            panel.set_xticks([float(label) for label in labels], labels)
            panel.set_xticks([], minor=True)
    if column in plan.log:
        panel.set_yscale("log")
    else:
        panel.set_ylim(0, 1.05 * max(panel.dataLim.y1, 1e-9) if panel.has_data() else None)
        panel.yaxis.set_major_formatter(_number)
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)
    if with_legend:
        panel.legend()


def _number(value: float, _: object) -> str:
    """A number of the y axis; thousands are kept apart."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
