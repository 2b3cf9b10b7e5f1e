"""What the plots of the exhibits have in common."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from poseidon.paper.exhibit import Exhibit
from poseidon.paper.palette import COLOURS, GREY
from poseidon.paper.study import Tables
from poseidon.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE_INCHES = (6.4, 4.0)
DOTS_PER_INCH = 150


def write_plots(exhibit: Exhibit, tables: Tables, paths: Sequence[Path]) -> None:
    """Draws an exhibit into files whose names end in .png or .svg; the same rows give the same files."""
    import matplotlib
    from matplotlib.figure import Figure

    assert exhibit.draw is not None
    with matplotlib.rc_context({"svg.hashsalt": exhibit.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        exhibit.draw(figure, tables)
        figure.draw_without_rendering()  # lays it out, which is what takes long: once for all files
        figure.set_layout_engine("none")
        for path in paths:
            kind = path.suffix[1:]
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata={"Date": None} if kind == "svg" else None)
            write_whole(path, partial(_write_bytes, content.getvalue()))


def _write_bytes(content: bytes, path: str) -> None:
    Path(path).write_bytes(content)


def grouped_bars(
    axes: Axes,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    hollow: Mapping[str, str] | None = None,
    value_format: str = "",
) -> None:
    """A group of bars for each label, a bar for each series (None: no bar); the legend is above.

    Series in `hollow` are drawn without a fill, in the colour of the series that it names (of none: grey): what the
    paper prints beside what is found. With a `value_format` each bar has its value on top.
    """
    hollow = hollow or {}
    colours = dict(zip((name for name in series if name not in hollow), COLOURS, strict=False))
    width = 0.84 / max(len(series), 1)
    for index, (name, values) in enumerate(series.items()):
        colour = colours.get(hollow.get(name, name), GREY)
        places = [place + (index - (len(series) - 1) / 2) * width for place in range(len(labels))]
        shown = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
        bars = axes.bar(
            [place for place, _ in shown],
            [value for _, value in shown],
            0.88 * width,
            color="none" if name in hollow else colour,
            edgecolor=colour,
            linewidth=1.2,
            label=name,
        )
        if value_format:
            axes.bar_label(bars, fmt=lambda value: format(value, value_format), fontsize=6.5, padding=1)
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    legend_above(axes)


def legend_above(axes: Axes) -> None:
    """A legend that covers nothing."""
    axes.legend(fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
