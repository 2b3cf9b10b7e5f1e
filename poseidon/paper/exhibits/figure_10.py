"""Figure 10: what the schedule alone does to throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from poseidon.paper.exhibit import Exhibit, MarkdownTable
from poseidon.paper.palette import COLOURS, MARKERS
from poseidon.paper.studies.schedules import PAPER_SCHEDULES, SCHEDULES
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDY = "schedules"
NAMES = {
    "1f1b": "1F1B",
    "eager_1f1b": "Eager 1F1B",
    "interleaved_1f1b": "Interleaved 1F1B",
    "adaptive_1f1b": "adaptive 1F1B (ours)",
}


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
    """The largest spread over the paper's three schedules, and with ours."""
    rows = tables[STUDY]
    batch = max(batches(rows), key=lambda size: spread(rows, size, PAPER_SCHEDULES))
    of_paper = speeds(rows, batch, PAPER_SCHEDULES)
    best, worst = max(of_paper, key=of_paper.__getitem__), min(of_paper, key=of_paper.__getitem__)
    least = min(spread(rows, size, PAPER_SCHEDULES) for size in batches(rows))
    all_of = max(spread(rows, size, SCHEDULES) for size in batches(rows))
    return (
        f"up to {spread(rows, batch, PAPER_SCHEDULES):.2f}x at global batch {batch} ({NAMES[best]} over {NAMES[worst]}) "
        f"and at least {least:.2f}x, each with the best plan of its own; up to {all_of:.2f}x with adaptive 1F1B."
    )


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """Throughput by batch and schedule, then the plans."""
    rows = tables[STUDY]
    header = ("global batch", *(NAMES[name] for name in SCHEDULES), "best / worst of the paper's three", "of all four")
    lines = []
    for batch in batches(rows):
        by_schedule = speeds(rows, batch, SCHEDULES)
        cells = [f"{by_schedule[name]:,.0f}" if name in by_schedule else "no plan" for name in SCHEDULES]
        ratios = [f"{spread(rows, batch, names):.3f}x" for names in (PAPER_SCHEDULES, SCHEDULES)]
        lines.append((str(batch), *cells, *ratios))
    return MarkdownTable(header, tuple(lines), frozenset(range(len(header)))), _plans(rows)


def _plans(rows: Sequence[Row]) -> MarkdownTable:
    header = ("global batch", "schedule", "plan", "stages", "bubble", "fullest memory", "proven", "search (s)")
    lines = tuple(
        (
            str(row["global_batch_size"]),
            NAMES[row["schedule"]],
            row.get("outer_choice") or row["reason"],
            str(row.get("pp") or "-"),
            _percent(row.get("bubble_fraction")),
            _percent(row.get("fullest_memory_fraction")),
            "optimal" if row["status"] == "optimal" else _gap(row),
            f"{row['search_s']:.1f}",
        )
        for row in rows
    )
    return MarkdownTable(header, lines, frozenset({0, 3, 4, 5, 7}))


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def _gap(row: Row) -> str:
    return str(row["status"]) if row.get("gap") is None else f"within {100 * row['gap']:.2f} %"


def draw(figure: Figure, tables: Tables) -> None:
    """Tokens/s over the batch, a line for each schedule; hollow where a plan is not proven optimal."""
    rows = tables[STUDY]
    figure.set_size_inches(6.4, 4.2)
    axes = figure.add_subplot()
    for number, schedule in enumerate(SCHEDULES):
        own = sorted(
            (row for row in rows if row["schedule"] == schedule and row.get("tokens_per_second")),
            key=lambda row: row["global_batch_size"],
        )
        color, marker = COLOURS[number], MARKERS[number]
        speed = [row["tokens_per_second"] / 1e3 for row in own]
        axes.plot([row["global_batch_size"] for row in own], speed, color=color, linewidth=1.2, zorder=1)
        for is_proven in (True, False):
            points = [(row, value) for row, value in zip(own, speed, strict=True) if _is_proven(row) == is_proven]
            axes.scatter(
                [row["global_batch_size"] for row, _ in points],
                [value for _, value in points],
                s=30,
                marker=marker,
                edgecolor=color,
                facecolor=color if is_proven else "white",
                zorder=2,
            )
        axes.plot([], [], color=color, marker=marker, label=NAMES[schedule])
    sizes = batches(rows)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("global batch (sequences)" + (_HOLLOW if not all(map(_is_proven, rows)) else ""))
    axes.set_ylabel("thousand tokens/s")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="lower right")


_HOLLOW = "\nhollow: best plan found, not proven optimal"


def _is_proven(row: Row) -> bool:
    return bool(row["status"] in ("optimal", "infeasible"))


def remarks(tables: Tables) -> tuple[str, ...]:
    """What is compared."""
    limited = sum(row["termination"] == "time limit" for row in tables[STUDY])
    stopped = f" {limited} of the {len(tables[STUDY])} searches were stopped by the time limit." if limited else ""
    return (
        "Each schedule has the best plan of its own, under its own memory: Eager and adaptive 1F1B hold more "
        f"activations, Interleaved 1F1B has two chunks a stage.{stopped}",
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
