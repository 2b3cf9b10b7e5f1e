"""Brute force: configurations counted and simulated, the optimum beside the exact search's, the time of the rest."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.enumerated import Setting, core_seconds, duration, settings
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.studies.brute_force import same_plan, same_time
from poseidon.paper.study import Row, Tables

STUDY = "brute-force"
SETTING_HEADER = (
    "setting",
    "outer choices",
    "enumerated",
    "configurations",
    "paper",
    "us a configuration",
    "paper",
    "all, on one core",
    "paper",
    "exact (s)",
)
CHOICE_HEADER = (
    "setting",
    "outer choice",
    "configurations",
    "simulated",
    "core time",
    "brute force (ms)",
    "exact (ms)",
    "same time",
    "same plan",
)


@dataclass(frozen=True)
class Reported:
    """What the paper says of brute force on a setting (section 6.2)."""

    configurations: str
    simulation_ms: float
    time: str


REPORTED = {
    "setting1": Reported("about 1.01e9", 0.025, "7 hours"),
    "setting2": Reported("not printed", 0.0408, "4.81 days"),
    "setting3": Reported("not printed", 0.189, "over 5,000 years"),
}


def found(tables: Tables) -> str:
    """What was enumerated, whether it agrees, and what the rest would take."""
    parts = []
    for setting in settings(tables[STUDY]):
        complete = setting.complete
        text = f"{setting.name}: {setting.configurations:,} configurations"
        if complete:
            simulated = sum(row["simulated"] for row in complete)
            text += (
                f", {simulated:,} simulated in {len(complete)} of {len(setting.rows)} outer choices (as many as "
                f"counted in {setting.counts_agree}, the exact search's time in {setting.same_times}, its plan in "
                f"{setting.same_plans}{_ties(setting)}){_overall(setting)}"
            )
        words = "took" if len(complete) == len(setting.rows) else "would take"
        parts.append(f"{text}; all of it {words} {duration(setting.core_s)} on one core")
    return ". ".join(parts) + "."


def _ties(setting: Setting) -> str:
    """What is the matter where the plans differ and the times do not."""
    ties = sum(same_time(row) and not same_plan(row) for row in setting.complete)
    return f" and one that is equally fast in {ties}" if ties else ""


def _overall(setting: Setting) -> str:
    """Whether the best plan of all is among those enumerated."""
    best, optimum = setting.best, setting.optimum
    if best is None or optimum is None:
        return ""
    if best["best_ms"] <= optimum["exact_ms"] * (1 + 1e-9):
        return ", the optimum of all among them"
    return f"; the optimum of all is in {optimum['outer_choice']}, not among them"


def tables(tables: Tables) -> tuple[MarkdownTable, ...]:
    """A line for each setting beside the paper's numbers, then one for each outer choice."""
    lines = []
    for setting in settings(tables[STUDY]):
        reported = REPORTED.get(setting.name, Reported("-", float("nan"), "-"))
        measured = (f"{setting.configurations:,}", reported.configurations, f"{setting.simulation_us:.2f}")
        of_paper = (f"{1e3 * reported.simulation_ms:g}", duration(setting.core_s), reported.time)
        counts, exact = (str(len(setting.rows)), str(len(setting.complete))), f"{setting.exact_s:.1f}"
        lines.append((setting.name, *counts, *measured, *of_paper, exact))
    choices = tuple(_choice_cells(row) for row in tables[STUDY])
    return (
        MarkdownTable(SETTING_HEADER, tuple(lines), frozenset({1, 2, 3, 5, 6, 9})),
        MarkdownTable(CHOICE_HEADER, choices, frozenset({2, 3, 5, 6})),
    )


def _choice_cells(row: Row) -> tuple[str, ...]:
    simulated = f"{row['simulated']:,}" if row["complete"] else f"{row['simulated']:,} (begun)"
    core = duration(core_seconds(row)) if row["complete"] else f"{duration(core_seconds(row))} (worked out)"
    counted = f"{int(row['configurations']):,}"
    best, exact = (f"{row[name]:,.3f}" if row.get(name) is not None else "-" for name in ("best_ms", "exact_ms"))
    same = ("-", "-")
    if row["complete"]:
        other = "equally fast" if same_time(row) else "NO"
        same = ("yes" if same_time(row) else "NO", "yes" if same_plan(row) else other)
    return (row["experiment"], row["outer_choice"], counted, simulated, core, best, exact, *same)


def remarks(tables: Tables) -> tuple[str, ...]:
    """What is enumerated, and how the rest is worked out."""
    open_ = [row for row in tables[STUDY] if row["treatment"] == "enumerated" and not row["complete"]]
    stopped = ""
    if open_:
        stopped = (
            f" {len(open_)} enumerations were stopped by the time limit: they are worked out like the rest, and go on "
        )
        stopped += "with --redo or another limit."
    return (
        "Node-level order. Setting 1 is enumerated whole, setting 2 on every outer choice of up to 1e9 configurations; "
        "all others are counted exactly and begun for some seconds, which gives the time of one of their own "
        f"configurations.{stopped}",
        "Our configurations are those of our batches, sequence lengths and memory model; the paper prints none of them."
        " The enumeration shares work between configurations with a common beginning, so that one takes less than a "
        "simulation from scratch.",
    )


EXHIBIT = Exhibit(
    name="brute-force",
    title="Brute force beside the exact search",
    studies=(STUDY,),
    reported=(
        "about 1.01e9 feasible configurations in setting 1, 0.025 ms each: 7 hours; setting 2 4.81 days (0.0408 ms), "
        "setting 3 over 5,000 years (0.189 ms); in settings 1 and 2 Poseidon's plan equals brute force's."
    ),
    found=found,
    tables=tables,
    remarks=remarks,
)
