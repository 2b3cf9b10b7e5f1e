"""Figure 4: the layers of optimal plans over the stages, and how often the best ridge is not the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from poseidon.paper.exhibit import Exhibit, MarkdownTable
from poseidon.paper.palette import COLOURS, MARKERS
from poseidon.paper.studies.ridge_problems import ROUNDING, SCHEDULES, SEED
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLANS, PROBLEMS = "ridge", "ridge-problems"
NAMES = {"1f1b": "1F1B", "eager_1f1b": "Eager 1F1B"}


def found(tables: Tables) -> str:
    """How many optimal plans are ridges, and how often the best ridge of a random problem is slower."""
    plans = tables[PLANS]
    ridges = sum(not row["broken_types"] for row in plans)
    parts = [f"{ridges} of {len(plans)} plans of settings 1 to 5 are ridges"]
    for schedule in SCHEDULES:
        rows = problems_of(tables[PROBLEMS], schedule, assumptions=True)
        slower = losses(rows)
        most = f", by up to {100 * max(slower):.2f} %" if slower else ""
        parts.append(
            f"under {NAMES[schedule]} the best ridge is slower than the optimum in {len(slower)} of {len(rows):,} "
            f"random problems that meet the assumptions of Theorem 2{most}"
        )
    return "; ".join(parts) + "."


def problems_of(rows: Sequence[Row], schedule: str, *, assumptions: bool) -> list[Row]:
    """The problems of a schedule whose optimum meets the assumptions, or does not."""
    return [row for row in rows if row["schedule"] == schedule and row["assumptions_hold"] == assumptions]


def losses(rows: Sequence[Row]) -> list[float]:
    """How much slower the best ridge is, for the problems in which it is: fractions; infinite where no ridge fits."""
    fractions = (
        float("inf") if row.get("ridge_ms") is None else row["ridge_ms"] / row["optimum_ms"] - 1 for row in rows
    )
    return [fraction for fraction in fractions if fraction > ROUNDING]


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """The plans with their layers, then the random problems."""
    plans = tuple(
        (
            row["experiment"],
            str(row["global_batch_size"]),
            layers_text(row),
            "no: " + ", ".join(row["broken_types"]) if row["broken_types"] else "yes",
            ridge_text(row),
            row["status"],
        )
        for row in tables[PLANS]
    )
    header = ("setting", "global batch", "layers of the stages, by type", "ridge?", "best ridge", "plan")
    random_rows = tuple(
        _problem_cells(schedule, assumptions, problems_of(tables[PROBLEMS], schedule, assumptions=assumptions))
        for schedule in SCHEDULES
        for assumptions in (True, False)
    )
    random_header = ("schedule", "assumptions of Theorem 2", "random problems", "best ridge slower", "by up to")
    return (
        MarkdownTable(header, plans, frozenset({1})),
        MarkdownTable(random_header, random_rows, frozenset({2, 3, 4})),
    )


def layers_text(row: Row) -> str:
    """``A2-3: 2 3 3 2; A2-2: 3 3 3 3``, in pipeline order."""
    stages = zip(row["accelerators"], row["layers"], strict=True)
    return "; ".join(
        f"{name}: {' '.join(str(layers) for _, layers in own)}" for name, own in groupby(stages, key=lambda s: s[0])
    )


def ridge_text(row: Row) -> str:
    """How much slower the best ridge is than a plan that is none."""
    if not row["broken_types"]:
        return "the plan"
    if row.get("ridge_ms") is None:
        return "none found"
    loss = row["ridge_ms"] / row["iteration_time_ms"] - 1
    text = "as fast" if abs(loss) <= ROUNDING else f"{100 * loss:+.2g} %"
    return text if row.get("ridge_complete") else f"{text} (search stopped)"


def _problem_cells(schedule: str, assumptions: bool, rows: Sequence[Row]) -> tuple[str, ...]:
    slower = losses(rows)
    most = f"{100 * max(slower):.2f} %" if slower else "-"
    return (NAMES[schedule], "met" if assumptions else "not met", f"{len(rows):,}", f"{len(slower):,}", most)


def draw(figure: Figure, tables: Tables) -> None:
    """A panel for each setting at its own batch: layers over stages, a line for each type."""
    settings = list(dict.fromkeys(row["experiment"] for row in tables[PLANS]))
    types = list(dict.fromkeys(name for row in tables[PLANS] for name in row["accelerators"]))
    figure.set_size_inches(3.1 * len(settings), 3.4)
    for index, setting in enumerate(settings, start=1):
        rows = sorted(
            (row for row in tables[PLANS] if row["experiment"] == setting), key=lambda row: row["global_batch_size"]
        )
        axes = figure.add_subplot(1, len(settings), index)
        _panel(axes, rows[len(rows) // 2], types)
        if index == 1:
            axes.set_ylabel("layers")


def _panel(axes: Axes, row: Row, types: Sequence[str]) -> None:
    for name in dict.fromkeys(row["accelerators"]):
        stages = [stage for stage, own in enumerate(row["accelerators"], start=1) if own == name]
        number = types.index(name)
        axes.plot(
            stages,
            [row["layers"][stage - 1] for stage in stages],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            linewidth=1.2,
            label=name,
        )
    shape = "ridge" if not row["broken_types"] else "no ridge"
    axes.set_title(f"{row['experiment']}, batch {row['global_batch_size']}\n{row['outer_choice']}: {shape}", fontsize=8)
    axes.set_xlabel("stage")
    axes.set_ylim(0, max(row["layers"]) * 1.25)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8, loc="lower center")


def remarks(tables: Tables) -> tuple[str, ...]:
    """What the random problems are."""
    return (
        f"The random problems ({len(tables[PROBLEMS]):,} with a feasible configuration, seed {SEED}) have two types "
        "with up to four and two stages, and are solved by simulating every configuration; the best ridge is found by "
        "simulating every ridge. The assumptions (1) to (4) are checked on the optimum.",
        "The proof of Theorem 2 is for Eager 1F1B; the paper's comparisons use plain 1F1B.",
    )


EXHIBIT = Exhibit(
    name="figure-4",
    title="Layers of optimal plans over the stages",
    studies=(PLANS, PROBLEMS),
    reported="optimal configurations consistently show a ridge: the layers of one type first rise, then fall.",
    found=found,
    tables=tables,
    draw=draw,
    remarks=remarks,
)
