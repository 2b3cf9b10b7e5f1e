"""Figure 4: the layers of optimal plans over the stages, and how often the best ridge is not the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.palette import COLOURS, MARKERS
from poseidon.paper.studies.ridge import OUTER_CHOICE, RIDGE_S, SETTING
from poseidon.paper.studies.ridge_problems import ROUNDING, SCHEDULES, SEED
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLANS, PROBLEMS = "ridge", "ridge-problems"
NAMES = {"1f1b": "1F1B", "eager_1f1b": "Eager 1F1B"}


def found(tables: Tables) -> str:
    """How many optimal plans are ridges, and how much the best ridge loses elsewhere."""
    parts = []
    for best_of, words in ((SETTING, "best plans of settings 1 to 5"), (OUTER_CHOICE, "optima of their outer choices")):
        plans = plans_of(tables[PLANS], best_of)
        parts.append(f"{sum(not row['broken_types'] for row in plans)} of {len(plans)} {words} are ridges")
    known = [row for row in tables[PLANS] if row["broken_types"] and row.get("ridge_complete") and row.get("ridge_ms")]
    slower = losses(known, "iteration_time_ms")
    if slower:
        parts[-1] += f", and the best ridge of the others is up to {100 * max(slower):.2f} % slower (1F1B)"
    for schedule in SCHEDULES:
        rows = problems_of(tables[PROBLEMS], schedule, assumptions=True)
        worse = losses(rows, "optimum_ms")
        most = f" (by up to {100 * max(worse):.2f} %)" if worse else ""
        parts.append(f"under {NAMES[schedule]} in {len(worse)} of {len(rows):,}{most}")
    plain, random_ones = "; ".join(parts[:2]), " and ".join(parts[2:])
    return f"{plain}; of random problems that meet the assumptions of Theorem 2 the best ridge is slower {random_ones}."


def plans_of(rows: Sequence[Row], best_of: str) -> list[Row]:
    """The best plans of whole settings, or of their outer choices."""
    return [row for row in rows if row["best_of"] == best_of]


def problems_of(rows: Sequence[Row], schedule: str, *, assumptions: bool) -> list[Row]:
    """The random problems of a schedule whose optimum meets the assumptions, or does not."""
    return [row for row in rows if row["schedule"] == schedule and row["assumptions_hold"] == assumptions]


def losses(rows: Sequence[Row], optimum: str) -> list[float]:
    """How much slower the best ridge is than the column `optimum`, where it is: fractions; infinite: no ridge fits."""
    fractions = (float("inf") if row.get("ridge_ms") is None else row["ridge_ms"] / row[optimum] - 1 for row in rows)
    return [fraction for fraction in fractions if fraction > ROUNDING]


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """The best plans, the outer choices whose optimum is no ridge, then the random problems."""
    return (*_plan_tables(tables[PLANS]), _problem_table(tables[PROBLEMS]))


def _plan_tables(rows: Sequence[Row]) -> tuple[MarkdownTable, ...]:
    header = ("setting", "global batch", "plan", "layers of the stages, by type", "ridge?", "best ridge")
    best = tuple(_plan_cells(row) for row in plans_of(rows, SETTING))
    broken = tuple(_plan_cells(row) for row in plans_of(rows, OUTER_CHOICE) if row["broken_types"])
    listed = (best, broken) if broken else (best,)
    return tuple(MarkdownTable(header, lines, frozenset({1})) for lines in listed)


def _plan_cells(row: Row) -> tuple[str, ...]:
    ridge = f"no: {', '.join(row['broken_types'])}" if row["broken_types"] else "yes"
    plan = row["outer_choice"] + ("" if row["status"] == "optimal" else f" ({row['status']})")
    return (row["experiment"], str(row["global_batch_size"]), plan, layers_text(row), ridge, ridge_text(row))


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
    return text if row.get("ridge_complete") else f"{text} so far (stopped)"


def _problem_table(rows: Sequence[Row]) -> MarkdownTable:
    header = (
        "schedule",
        "assumptions of Theorem 2",
        "random problems",
        "with allocations that are no ridge",
        "best ridge slower",
        "by up to",
    )
    lines = []
    for schedule in SCHEDULES:
        for assumptions in (True, False):
            own = problems_of(rows, schedule, assumptions=assumptions)
            worse = losses(own, "optimum_ms")
            pruned = sum(row["ridges"] < row["configurations"] for row in own)
            most = f"{100 * max(worse):.2f} %" if worse else "-"
            held = "met" if assumptions else "not met"
            lines.append((NAMES[schedule], held, f"{len(own):,}", f"{pruned:,}", f"{len(worse):,}", most))
    return MarkdownTable(header, tuple(lines), frozenset({2, 3, 4, 5}))


def draw(figure: Figure, tables: Tables) -> None:
    """Layers over stages, a column for each setting: its best plan, and below the deepest optimum that is no ridge."""
    rows = tables[PLANS]
    settings = list(dict.fromkeys(row["experiment"] for row in rows))
    types = list(dict.fromkeys(name for row in rows for name in row["accelerators"]))
    figure.set_size_inches(3.0 * len(settings), 5.4)
    for index, setting in enumerate(settings, start=1):
        choices = [row for row in plans_of(rows, OUTER_CHOICE) if row["experiment"] == setting]
        best = min(choices, key=lambda row: float(row["iteration_time_ms"]))
        deepest = max(choices, key=lambda row: (bool(row["broken_types"]), len(row["layers"])))
        for line, (row, words) in enumerate(((best, "best plan"), (deepest, "a deep optimum"))):
            axes = figure.add_subplot(2, len(settings), index + line * len(settings))
            _panel(axes, row, types, words)
            if index == 1:
                axes.set_ylabel("layers")
            if line == 1:
                axes.set_xlabel("stage")
    handles = [figure.axes[0].plot([], [], **_style(types, name), label=name)[0] for name in types]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(types), fontsize=9)


def _style(types: Sequence[str], name: str) -> dict[str, Any]:
    number = types.index(name)
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "linewidth": 1.2}


def _panel(axes: Axes, row: Row, types: Sequence[str], words: str) -> None:
    for name in dict.fromkeys(row["accelerators"]):
        stages = [stage for stage, own in enumerate(row["accelerators"], start=1) if own == name]
        axes.plot(stages, [row["layers"][stage - 1] for stage in stages], **_style(types, name), markersize=4)
    shape = f"no ridge ({', '.join(row['broken_types'])})" if row["broken_types"] else "ridge"
    axes.set_title(f"{row['experiment']}, {words}\n{row['outer_choice']}: {shape}", fontsize=8)
    axes.set_xlim(0.5, len(row["layers"]) + 0.5)
    axes.set_ylim(0, max(row["layers"]) * 1.15)
    axes.locator_params(integer=True)
    axes.grid(axis="y", alpha=0.3)


def remarks(tables: Tables) -> tuple[str, ...]:
    """What the plans and the random problems are."""
    choices = plans_of(tables[PLANS], OUTER_CHOICE)
    broken = [row for row in choices if row["broken_types"]]
    stopped = sum(not row.get("ridge_complete") for row in broken)
    return (
        f"Settings at half, once and twice their batch; at their own batch also the optimum of each of {len(choices)} "
        f"outer choices with a plan. For the {len(broken)} that are no ridge the paper's policy looked for the best "
        f"ridge for {RIDGE_S:g} s at the most; {stopped} of these searches were stopped.",
        "The best plans have few stages of a type, where nearly everything is a ridge; deep pipelines tell more.",
        f"The random problems ({len(tables[PROBLEMS]):,} with a feasible configuration, seed {SEED}) have up to four "
        "stages of one type and up to two of another, and are solved by simulating every configuration; the best ridge "
        "is found by simulating every ridge. The assumptions (1) to (4) are checked on the optimum.",
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
