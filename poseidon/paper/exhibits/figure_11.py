"""Figure 11: the best time so far over the search, with and without each pruning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.palette import BLACK, BLUE, GREEN, GREY, ORANGE
from poseidon.paper.studies.ablation import EXACT, VARIANTS
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "ablation"
STYLES = {
    "none": (GREY, 5.5),
    "layer-level": (ORANGE, 4.0),
    "stage-level": (BLUE, 2.5),
    "both": (GREEN, 1.2),
    EXACT: (BLACK, 1.2),
}
"""Colours, and widths from wide to narrow in the order of drawing: curves that coincide can all be seen."""
NAMES = {"none": "no pruning", "layer-level": "only layer-level", "stage-level": "only stage-level"}
NAMES |= {"both": "both", EXACT: "exact (ours)"}


def batches(rows: Sequence[Row]) -> list[int]:
    """The batches, ascending."""
    return sorted({row["global_batch_size"] for row in rows})


def row_of(rows: Sequence[Row], batch: int, pruning: str) -> Row:
    """The row of a variant at a batch."""
    return next(row for row in rows if row["global_batch_size"] == batch and row["pruning"] == pruning)


def best_of_all_ms(rows: Sequence[Row], batch: int) -> float:
    """The best time that any variant found at a batch; infinite where none found a plan."""
    times = [row["best_ms"] for row in rows if row["global_batch_size"] == batch and row.get("best_ms") is not None]
    return min(times, default=float("inf"))


def slower(rows: Sequence[Row], row: Row) -> float | None:
    """How much slower a variant's plan is than the best of its batch, a fraction; None without a plan."""
    best_ms = row.get("best_ms")
    return None if best_ms is None else best_ms / best_of_all_ms(rows, row["global_batch_size"]) - 1


def found(tables: Tables) -> str:
    """How far each variant came, over all batches."""
    rows = tables[STUDY]
    parts = []
    for variant in VARIANTS:
        own = [row_of(rows, batch, variant.name) for batch in batches(rows)]
        gaps = [gap for gap in (slower(rows, row) for row in own) if gap is not None]
        ended = sum(row["complete"] for row in own)
        seconds = max(row["search_s"] for row in own)
        worst = f"at most {100 * max(gaps):.2g} % above the best" if len(gaps) == len(own) else "not always a plan"
        parts.append(f"{NAMES[variant.name]}: {worst}, {ended} of {len(own)} ended, at most {seconds:.3g} s")
    return "; ".join(parts) + "."


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """A line for each batch and variant."""
    rows = tables[STUDY]
    header = (
        "global batch",
        "pruning",
        "best (ms)",
        "above the best",
        "last improvement (s)",
        "search (s)",
        "ended",
        "simulator calls",
    )
    lines = []
    for batch in batches(rows):
        for variant in VARIANTS:
            row = row_of(rows, batch, variant.name)
            gap = slower(rows, row)
            lines.append(
                (
                    str(batch),
                    NAMES[variant.name],
                    "none" if gap is None else f"{row['best_ms']:,.1f}",
                    "-" if gap is None else f"{100 * gap:.2g} %",
                    f"{row['curve_s'][-1]:.2f}" if len(row["curve_s"]) else "-",
                    f"{row['search_s']:.2f}",
                    "yes" if row["complete"] else f"no: {row['termination']}",
                    f"{row['simulations']:,}",
                )
            )
    return (MarkdownTable(header, tuple(lines), frozenset({0, 2, 3, 4, 5, 7})),)


def draw(figure: Figure, tables: Tables) -> None:
    """A panel for each batch: the best time so far over the seconds of the search; a dot where a search ended."""
    rows = tables[STUDY]
    sizes = batches(rows)
    figure.set_size_inches(4.0 * len(sizes), 3.9)
    for index, batch in enumerate(sizes, start=1):
        axes = figure.add_subplot(1, len(sizes), index)
        for variant in VARIANTS:
            _curve(axes, row_of(rows, batch, variant.name))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(f"global batch {batch}", fontsize=10)
        axes.set_xlabel("seconds of the search")
        axes.grid(alpha=0.3)
        if index == 1:
            axes.set_ylabel("best iteration time so far (ms)")
            axes.legend(fontsize=8)


def _curve(axes: Axes, row: Row) -> None:
    """The curve goes on until the search ends or is stopped."""
    color, width = STYLES[row["pruning"]]
    seconds, times = [*row["curve_s"]], [*row["curve_ms"]]
    if not seconds:
        return
    end_s = max(row["search_s"], seconds[-1])
    axes.step(
        [*seconds, end_s], [*times, times[-1]], where="post", color=color, linewidth=width, label=NAMES[row["pruning"]]
    )
    if row["complete"]:
        axes.plot(end_s, times[-1], "o", color=color, markersize=6)


def remarks(tables: Tables) -> tuple[str, ...]:
    """What is alike for all."""
    row = tables[STUDY][0]
    return (
        f"All searches run in one process, with the same {row['warmup_samples']} warm-up samples (seed {row['seed']}) "
        f"and the same order of outer choices; each is stopped after {row['time_limit_s']:g} s. Dots: the search ended "
        "by itself. The paper's figure has no readable numbers; its batches are not named.",
        "The search time of policy paper includes the proof of its plan, where the search ended.",
    )


EXHIBIT = Exhibit(
    name="figure-11",
    title="Best time over the search with and without each pruning, LLaMA 30B (setting 3)",
    studies=(STUDY,),
    reported="each pruning speeds the search up for every batch; both together reduce the time fastest.",
    found=found,
    tables=tables,
    draw=draw,
    remarks=remarks,
)
