"""Figure 10: what the schedule alone does to throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.palette import COLOURS
from poseidon.paper.studies.schedules import FREE, OF_TABLE_1, PAPER_SCHEDULES, SCHEDULES
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "schedules"
NAMES = {
    "1f1b": "1F1B",
    "eager_1f1b": "Eager 1F1B",
    "interleaved_1f1b": "Interleaved 1F1B",
    "adaptive_1f1b": "adaptive 1F1B (ours)",
}
WORDS = {FREE: "any degrees", OF_TABLE_1: "DP 2, TP 1, 16 stages (the paper's plan in Table 1)"}


def rows_with(tables: Tables, degrees: str) -> list[Row]:
    """The rows whose plans have these degrees."""
    return [row for row in tables[STUDY] if row["degrees"] == degrees]


def batches(rows: Sequence[Row]) -> list[int]:
    """The batches, ascending."""
    return sorted({row["global_batch_size"] for row in rows})


def speeds(rows: Sequence[Row], batch: int, schedules: Sequence[str]) -> dict[str, float]:
    """Tokens/s by schedule at a batch; schedules without a plan are left out."""
    return {
        row["schedule"]: row["tokens_per_second"]
        for schedule in schedules
        for row in rows
        if row["schedule"] == schedule and row["global_batch_size"] == batch and row.get("tokens_per_second")
    }


def spread(rows: Sequence[Row], batch: int, schedules: Sequence[str]) -> float:
    """Throughput of the best schedule over that of the worst; 1 with fewer than two plans."""
    values = speeds(rows, batch, schedules).values()
    return max(values) / min(values) if values else 1.0


def found(tables: Tables) -> str:
    """The largest spread over the paper's three schedules, for each choice of degrees."""
    parts = [f"{_largest(rows)} with {WORDS[name]}" for name in WORDS if (rows := rows_with(tables, name))]
    return f"{'; '.join(parts)}, each schedule with the best plan of its own."


def _largest(rows: Sequence[Row]) -> str:
    batch = max(batches(rows), key=lambda size: spread(rows, size, PAPER_SCHEDULES))
    of_paper = speeds(rows, batch, PAPER_SCHEDULES)
    if len(of_paper) < 2:
        return "no two schedules have a plan"
    best, worst = max(of_paper, key=of_paper.__getitem__), min(of_paper, key=of_paper.__getitem__)
    least = min(spread(rows, size, PAPER_SCHEDULES) for size in batches(rows))
    return (
        f"up to {spread(rows, batch, PAPER_SCHEDULES):.2f}x (global batch {batch}, {NAMES[best]} over {NAMES[worst]}), "
        f"at least {least:.2f}x,"
    )


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """Throughput by degrees, batch and schedule, then the plans."""
    return _throughput(tables), _plans(tables[STUDY])


def _throughput(tables: Tables) -> MarkdownTable:
    header = ("degrees", "global batch", *(f"{NAMES[name]}, tokens/s" for name in SCHEDULES))
    header = (*header, "best / worst of the paper's three", "of all four")
    lines = []
    for degrees in WORDS:
        rows = rows_with(tables, degrees)
        for batch in batches(rows):
            by_schedule = speeds(rows, batch, SCHEDULES)
            cells = [f"{by_schedule[name]:,.0f}" if name in by_schedule else "no plan" for name in SCHEDULES]
            ratios = [f"{spread(rows, batch, names):.3f}x" for names in (PAPER_SCHEDULES, SCHEDULES)]
            lines.append((degrees, str(batch), *cells, *ratios))
    return MarkdownTable(header, tuple(lines), frozenset(range(1, len(header))))


def _plans(rows: Sequence[Row]) -> MarkdownTable:
    header = ("degrees", "global batch", "plan", "stages", "bubble", "fullest memory", "proven", "search (s)")
    lines = tuple(
        (
            row["degrees"],
            str(row["global_batch_size"]),
            row.get("outer_choice") or f"{row['schedule']}: {row['reason']}",
            str(row.get("pp") or "-"),
            _percent(row.get("bubble_fraction")),
            _percent(row.get("fullest_memory_fraction")),
            "optimal" if row["status"] == "optimal" else _gap(row),
            f"{row['search_s']:.1f}",
        )
        for row in rows
    )
    return MarkdownTable(header, lines, frozenset({1, 3, 4, 5, 7}))


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def _gap(row: Row) -> str:
    return str(row["status"]) if row.get("gap") is None else f"within {100 * row['gap']:.2f} %"


def draw(figure: Figure, tables: Tables) -> None:
    """A panel for each choice of degrees: a bar for each schedule and batch, the spread above; hollow: not proven."""
    shown = [name for name in WORDS if rows_with(tables, name)]
    figure.set_size_inches(6.2 * len(shown), 4.4)
    for index, degrees in enumerate(shown, start=1):
        axes = figure.add_subplot(1, len(shown), index)
        _panel(axes, rows_with(tables, degrees))
        axes.set_title(WORDS[degrees], fontsize=10)
        if index == 1:
            axes.set_ylabel("thousand tokens/s")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(SCHEDULES))


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    sizes, width = batches(rows), 0.8 / len(SCHEDULES)
    for number, schedule in enumerate(SCHEDULES):
        own = [row for row in rows if row["schedule"] == schedule and row.get("tokens_per_second")]
        axes.bar(
            [sizes.index(row["global_batch_size"]) + (number - (len(SCHEDULES) - 1) / 2) * width for row in own],
            [row["tokens_per_second"] / 1e3 for row in own],
            0.9 * width,
            color=[COLOURS[number] if row["status"] == "optimal" else "white" for row in own],
            edgecolor=COLOURS[number],
        )
        axes.bar([0], [0], color=COLOURS[number], label=NAMES[schedule])
    for place, batch in enumerate(sizes):
        top = max(speeds(rows, batch, SCHEDULES).values(), default=0.0) / 1e3
        axes.text(place, top, f"{spread(rows, batch, PAPER_SCHEDULES):.2f}x", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlabel("global batch (sequences)")
    axes.margins(y=0.08)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def remarks(tables: Tables) -> tuple[str, ...]:
    """What is compared."""
    rows = tables[STUDY]
    limited = sum(row["termination"] == "time limit" for row in rows)
    stopped = f" {limited} of the {len(rows)} searches were stopped by the time limit (hollow bars)." if limited else ""
    return (
        "Each schedule has the best plan of its own, under its own memory: Eager and adaptive 1F1B hold more "
        f"activations, Interleaved 1F1B has two chunks a stage. Above the bars: best over worst of the paper's three."
        f"{stopped}",
        "Where the degrees are free the search answers a schedule that idles with other degrees and fewer stages; the "
        "paper holds other factors constant without saying at which values, so that its own plan's degrees are shown "
        "as well.",
    )


EXHIBIT = Exhibit(
    name="figure-10",
    title="Throughput under each schedule over the global batch, setting 2",
    studies=(STUDY,),
    reported="the schedule alone changes throughput by up to 1.3x (setting 2, global batch 32 to 512).",
    found=found,
    tables=tables,
    draw=draw,
    remarks=remarks,
)
