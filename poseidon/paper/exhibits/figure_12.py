"""Figure 12: simulator calls of the paper's search over the warm-up count."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from poseidon.paper.exhibit import Exhibit, MarkdownTable
from poseidon.paper.palette import BLUE, GREY, VERMILION
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDY = "warm-up"
PAPER_WORST = 23.2
"""Simulator calls without warm-up over those of the best count (paper, section 6.4.2)."""


def calls_by_count(rows: Sequence[Row]) -> dict[int, list[int]]:
    """Simulator calls of the seeds by warm-up count, ascending."""
    counts = sorted({row["warmup_samples"] for row in rows})
    return {count: [row["simulations"] for row in rows if row["warmup_samples"] == count] for count in counts}


def best_count(rows: Sequence[Row]) -> int:
    """The count with the fewest calls (median over the seeds)."""
    by_count = calls_by_count(rows)
    return min(by_count, key=lambda count: median(by_count[count]))


def over_best(rows: Sequence[Row], count: int) -> float:
    """Calls of a count over those of the best count, medians."""
    by_count = calls_by_count(rows)
    return median(by_count[count]) / median(by_count[best_count(rows)])


def found(tables: Tables) -> str:
    """What no warm-up costs, and which count is best."""
    rows = tables[STUDY]
    by_count = calls_by_count(rows)
    best, worst = best_count(rows), max(by_count, key=lambda count: median(by_count[count]))
    seeds = max(map(len, by_count.values()))
    parts = [f"{count:,} samples {over_best(rows, count):.2f}x" for count in dict.fromkeys((500, worst)) if count in by_count]
    return (
        f"no warm-up costs {over_best(rows, min(by_count)):.2f}x the simulator calls of the best count, {best:,} "
        f"({median(by_count[best]):,.0f} calls; medians of {seeds} seeds); {', '.join(parts)}."
    )


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """Calls by count: least, median, most over the seeds, and the median over the best."""
    rows = tables[STUDY]
    header = ("warm-up samples", "calls, median", "least", "most", "over the best count", "of these warm-up", "s, median")
    lines = tuple(
        (
            f"{count:,}",
            f"{median(calls):,.0f}",
            f"{min(calls):,}",
            f"{max(calls):,}",
            f"{over_best(rows, count):.2f}x",
            f"{100 * count / median(calls):.2g} %",
            f"{median(row['search_s'] for row in rows if row['warmup_samples'] == count):.2f}",
        )
        for count, calls in calls_by_count(rows).items()
    )
    return (MarkdownTable(header, lines, frozenset(range(len(header)))),)


def draw(figure: Figure, tables: Tables) -> None:
    """Calls over the best count's: median with the range over the seeds, and the paper's worst."""
    rows = tables[STUDY]
    by_count = calls_by_count(rows)
    least = median(by_count[best_count(rows)])
    figure.set_size_inches(6.4, 4.0)
    axes = figure.add_subplot()
    places = range(len(by_count))
    middle = [median(calls) / least for calls in by_count.values()]
    low = [min(calls) / least for calls in by_count.values()]
    high = [max(calls) / least for calls in by_count.values()]
    axes.fill_between(places, low, high, color=BLUE, alpha=0.2, linewidth=0, label="range over the seeds")
    axes.plot(places, middle, color=BLUE, marker="o", label="median")
    axes.plot([0], [PAPER_WORST], color=VERMILION, marker="D", linestyle="", label=f"paper, no warm-up: {PAPER_WORST}x")
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.set_yscale("log")
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500) if tick <= 1.5 * max(*high, PAPER_WORST)]
    axes.set_yticks(ticks, [f"{tick}x" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(places, [f"{count // 1000}K" if count >= 1000 else str(count) for count in by_count])
    axes.set_xlabel("warm-up samples")
    axes.set_ylabel("simulator calls / fewest")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()


def remarks(tables: Tables) -> tuple[str, ...]:
    """Where it was measured, and whether every search ended."""
    rows = tables[STUDY]
    stopped = sum(not row["complete"] for row in rows)
    ended = "every search ended by itself" if not stopped else f"{stopped} searches were stopped by the time limit"
    times = [row["best_ms"] for row in rows if row.get("best_ms") is not None]
    same = "all found the same time" if times and max(times) <= min(times) * (1 + 1e-9) else "they found different times"
    return (
        f"Policy paper on {rows[0]['experiment']} in one process: {ended}, and {same}. The paper does not say on which "
        "setting it counted.",
    )


EXHIBIT = Exhibit(
    name="figure-12",
    title="Simulator calls over the warm-up count",
    studies=(STUDY,),
    reported=f"no warm-up costs {PAPER_WORST}x the simulator calls of the best count; 500 samples are its default.",
    found=found,
    tables=tables,
    draw=draw,
    remarks=remarks,
)
