"""What a sweep file holds: a base experiment, the axes of the grid, and what to plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, StrictFloat, StrictInt

from poseidon.inputs.fields import PRINTABLE, Name
from poseidon.inputs.file_model import FileModel, Problem, shown

Label = StrictInt | StrictFloat | Name
"""What a point is called in tables and plots; numbers are plotted as numbers."""
FieldPath = Annotated[str, Field(strict=True, min_length=1, max_length=500, pattern=PRINTABLE)]
"""A field of the experiment: ``search.policy``, ``cluster.nodes.0.count``."""
MAX_POINTS = 10_000


class PointFile(FileModel):
    """A point of an axis that changes several fields together."""

    label: Label
    """What the point is called."""
    set: Annotated[dict[FieldPath, Any], Field(default_factory=dict)]
    """Values by field; none: the experiment as it is."""


class AxisFile(FileModel):
    """One axis of the grid: either `values` of one field, or `points`."""

    field: FieldPath | None = None
    """The field that takes the values (default: the axis' name)."""
    values: Annotated[tuple[Any, ...], Field(min_length=1, max_length=MAX_POINTS)] | None = None
    """The field's values."""
    labels: Annotated[tuple[Label, ...], Field(max_length=MAX_POINTS)] | None = None
    """What the values are called (default: the value itself, of a path the file's name)."""
    points: Annotated[tuple[PointFile, ...], Field(min_length=1, max_length=MAX_POINTS)] | None = None
    """Points that change several fields together."""

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """Values or points, and a label for each value."""
        values, labels, points = (data.get(key) for key in ("values", "labels", "points"))
        if (values is None) == (points is None):
            yield Problem((), "needs either values, or points that set several fields together")
        elif points is not None and (labels is not None or data.get("field") is not None):
            yield Problem((), "points have labels and fields of their own: leave out field and labels")
        if isinstance(values, list) and isinstance(labels, list) and len(values) != len(labels):
            yield Problem(("labels",), f"has {len(labels)} entries for {len(values)} values")


class PlotFile(FileModel):
    """What the plot shows."""

    x: Name | None = None
    """An axis (default: the first one whose labels are numbers, else the first)."""
    y: Annotated[tuple[str, ...], Field(min_length=1, max_length=6)] = ("tokens_per_second",)
    """Numeric columns of the rows, a panel each."""
    series: Annotated[tuple[Name, ...], Field(max_length=20)] | None = None
    """Axes that become lines (default: all others)."""
    log: Annotated[tuple[str, ...], Field(max_length=7)] = ()
    """Of `x` and `y`, those on a logarithmic scale."""

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """What is on a logarithmic scale is plotted."""
        log, y = data.get("log"), data.get("y", ["tokens_per_second"])
        plotted = [data.get("x"), *(y if isinstance(y, list) else [])]
        for index, name in enumerate(log if isinstance(log, list) else ()):
            if isinstance(name, str) and name not in plotted:
                yield Problem(("log", index), f"{shown(name)} is neither the x nor one of the y of the plot")


class SweepFile(FileModel):
    """A whole sweep file."""

    name: Name
    """What the sweep is called (default, filled in by the loader: the file's name)."""
    experiment: Annotated[str, Field(strict=True, min_length=1)]
    """The path of the base experiment, relative to the sweep file."""
    set: Annotated[dict[FieldPath, Any], Field(default_factory=dict)]
    """Changes to the base experiment that hold for every run; axes go before them."""
    axes: Annotated[dict[Name, AxisFile], Field(min_length=1, max_length=20)]
    """The axes of the grid by name; a list alone stands for `values`. The last one varies fastest."""
    plot: PlotFile = PlotFile()
    """What the plot shows."""

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """The plot's axes are axes of the sweep."""
        axes, plot = data.get("axes"), data.get("plot")
        if not isinstance(axes, Mapping) or not isinstance(plot, Mapping):
            return
        series = plot.get("series")
        named = [("x", plot.get("x")), *(("series", name) for name in (series if isinstance(series, list) else ()))]
        for key, name in named:
            if isinstance(name, str) and name not in axes:
                yield Problem(("plot", key), f"{shown(name)} is no axis; the axes are {', '.join(map(shown, axes))}")
