"""The timeline as PNG and SVG."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from poseidon.report.simulated import Simulated
from poseidon.simulate import TransferStep
from poseidon.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOT_FILES = ("timeline.png", "timeline.svg")
COLOURS = {"F": "#3f7fc1", "B": "#e2a33c", "I": "#d9743a", "W": "#79a857"}
NAMES = {"F": "forward", "B": "backward", "I": "backward, input part", "W": "backward, weight part"}
REDUCE_COLOUR, PATH_COLOUR = "#8a63b8", "#c2185b"
"""As on the page."""
WIDTH_INCHES, DOTS_PER_INCH = 14.0, 150
MOST_VECTORS = 5_000
"""Operations that an SVG draws one by one; more become a picture in it, which opens at once."""


def write_plot(simulated: Simulated, directory: Path) -> list[Path]:
    """Draws the timeline into `PLOT_FILES`; returns their paths. Raises ImportError without matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    stages = len(simulated.words)
    height = 1.6 + min(14.0, 0.32 * stages)
    paths = [directory / name for name in PLOT_FILES]
    # Names are no formulas; a fixed salt and no date: the same timeline gives the same file.
    with matplotlib.rc_context({"svg.hashsalt": "poseidon", "text.parse_math": False, "text.usetex": False}):
        figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        axes = figure.add_subplot()
        _operations(axes, simulated)
        _critical_path(axes, simulated)
        _label(axes, simulated)
        for path in paths:
            kind = path.suffix[1:]
            metadata = {"Date": None} if kind == "svg" else None
            write_whole(path, partial(figure.savefig, format=kind, dpi=DOTS_PER_INCH, metadata=metadata))
    return paths


def _operations(axes: Axes, simulated: Simulated) -> None:
    timeline = simulated.timeline
    spans: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for item in timeline.operations():
        place = spans.setdefault((item.stage, item.action.kind), [])
        place.append((item.start_ms, item.end_ms - item.start_ms))
    raster = timeline.order.num_operations > MOST_VECTORS
    named: set[str] = set()
    for (stage, kind), ranges in spans.items():
        label = None if kind in named else NAMES[kind]
        named.add(kind)
        edge = 0.0 if raster else 0.3
        axes.broken_barh(
            ranges,
            (stage - 0.4, 0.8),
            facecolors=COLOURS[kind],
            edgecolors="white",
            linewidth=edge,
            label=label,
            rasterized=raster,
        )
    label = "gradient all-reduce"
    for stage, use in enumerate(timeline.stages):
        if use.all_reduce_ms > 0:
            start = float(simulated.messages.all_reduce_ms[stage])
            axes.broken_barh([(start, use.all_reduce_ms)], (stage - 0.4, 0.8), facecolors=REDUCE_COLOUR, label=label)
            label = ""


def _critical_path(axes: Axes, simulated: Simulated) -> None:
    times: list[float] = []
    stages: list[float] = []
    for step in simulated.timeline.critical_path:
        last = step.to_stage if isinstance(step, TransferStep) else step.stage
        times += [step.start_ms, step.end_ms]
        stages += [step.stage + 0.3, last + 0.3]
    axes.plot(times, stages, color=PATH_COLOUR, linewidth=1.2, label="critical path")


def _label(axes: Axes, simulated: Simulated) -> None:
    names = [f"{number} {words.short}".rstrip() for number, words in enumerate(simulated.words)]
    every = max(1, len(names) // 60)
    axes.set_yticks(range(0, len(names), every), names[::every])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, simulated.iteration_time_ms or 1.0)
    axes.set_xlabel("ms")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}")
    title = f"{simulated.title}: {simulated.iteration_time_ms:,.1f} ms an iteration\n{simulated.shape}"
    axes.set_title(title, loc="left", fontsize=10)
    axes.figure.legend(loc="outside lower center", ncols=6, fontsize=9, frameon=False)
