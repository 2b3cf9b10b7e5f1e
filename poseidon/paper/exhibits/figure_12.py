"""Figure 12: simulator calls of the paper's search over the warm-up count."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.palette import BLACK, COLOURS, MARKERS
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "warm-up"
PAPER_WORST = 23.2
"""Simulator calls without warm-up over those of the best count (paper, section 6.4.2)."""
PAPER_COUNT = 500
"""The paper's default."""


def settings(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows by experiment."""
    names = dict.fromkeys(row["experiment"] for row in rows)
    return {name: [row for row in rows if row["experiment"] == name] for name in names}


def calls_by_count(rows: Sequence[Row]) -> dict[int, list[int]]:
    """Simulator calls of the seeds by warm-up count, ascending; of one experiment."""
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
    """What no warm-up, the paper's count and the worst cost on each setting."""
    parts = []
    for name, rows in settings(tables[STUDY]).items():
        by_count = calls_by_count(rows)
        worst = max(by_count, key=lambda count: over_best(rows, count))
        counts = dict.fromkeys(count for count in (0, PAPER_COUNT, worst) if count in by_count)
        costs = ", ".join(
            f"{over_best(rows, count):.2f}x with {f'{count:,}' if count else 'no'} samples" for count in counts
        )
        parts.append(f"{name}: {costs} (fewest calls with {best_count(rows):,})")
    seeds = max(len(calls) for rows in settings(tables[STUDY]).values() for calls in calls_by_count(rows).values())
    return f"{'; '.join(parts)}; medians of {seeds} seeds."


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """A line for each count: calls (median) on each setting, and over the best count's."""
    by_setting = settings(tables[STUDY])
    header = ["warm-up samples"]
    for name in by_setting:
        header += [f"{name}: calls", "over the fewest", "over the seeds"]
    counts = sorted({row["warmup_samples"] for row in tables[STUDY]})
    lines = tuple((f"{count:,}", *_cells(by_setting, count)) for count in counts)
    return (MarkdownTable(tuple(header), lines, frozenset(range(len(header)))),)


def _cells(by_setting: dict[str, list[Row]], count: int) -> list[str]:
    cells = []
    for rows in by_setting.values():
        calls = calls_by_count(rows).get(count)
        if calls is None:
            cells += ["-", "-", "-"]
        else:
            cells += [f"{median(calls):,.0f}", f"{over_best(rows, count):.2f}x", f"{min(calls):,}-{max(calls):,}"]
    return cells


def draw(figure: Figure, tables: Tables) -> None:
    """Calls over the best count's: a line of medians for each setting with the range over the seeds."""
    figure.set_size_inches(6.4, 4.2)
    axes = figure.add_subplot()
    counts = sorted({row["warmup_samples"] for row in tables[STUDY]})
    for number, (name, rows) in enumerate(settings(tables[STUDY]).items()):
        _line(axes, name, rows, counts, number)
    label = f"paper, no warm-up: {PAPER_WORST}x"
    axes.plot([0], [PAPER_WORST], color=BLACK, marker="*", markersize=10, linestyle="", label=label)
    axes.set_yscale("log")
    top = max(axes.dataLim.y1, PAPER_WORST)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500) if tick <= 1.5 * top]
    axes.set_yticks(ticks, [f"{tick}x" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(range(len(counts)), [f"{count // 1000}K" if count >= 1000 else str(count) for count in counts])
    axes.set_xlabel("warm-up samples")
    axes.set_ylabel("simulator calls / those of the best count")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()


def _line(axes: Axes, name: str, rows: Sequence[Row], counts: Sequence[int], number: int) -> None:
    color, by_count = COLOURS[number % len(COLOURS)], calls_by_count(rows)
    least = median(by_count[best_count(rows)])
    places = [counts.index(count) for count in by_count]
    low = [min(calls) / least for calls in by_count.values()]
    high = [max(calls) / least for calls in by_count.values()]
    axes.fill_between(places, low, high, color=color, alpha=0.15, linewidth=0)
    middle = [median(calls) / least for calls in by_count.values()]
    axes.plot(
        places, middle, color=color, marker=MARKERS[number % len(MARKERS)], markersize=4, linewidth=1.2, label=name
    )


def remarks(tables: Tables) -> tuple[str, ...]:
    """Where it was measured, and whether every search ended."""
    rows = tables[STUDY]
    stopped = sum(not row["complete"] for row in rows)
    ended = "every search ended by itself" if not stopped else f"{stopped} searches were stopped by the time limit"
    same = all(map(_is_one_time, settings(rows).values()))
    agree = "all of a setting found the same time" if same else "not all of a setting found the same time"
    return (
        f"Policy paper in one process: {ended}, and {agree}. The paper does not say on which setting it counted. "
        "Setting 3 is left out: there the paper's policy takes minutes (docs/performance.md).",
        "Without warm-up the first configurations of the first outer choice are the first times to beat.",
    )


def _is_one_time(rows: Sequence[Row]) -> bool:
    times = [row["best_ms"] for row in rows if row.get("best_ms") is not None]
    return bool(times) and max(times) <= min(times) * (1 + 1e-9)


EXHIBIT = Exhibit(
    name="figure-12",
    title="Simulator calls over the warm-up count",
    studies=(STUDY,),
    reported=(
        f"no warm-up costs {PAPER_WORST}x the simulator calls of the best count; {PAPER_COUNT} samples are its default."
    ),
    found=found,
    tables=tables,
    draw=draw,
    remarks=remarks,
)
