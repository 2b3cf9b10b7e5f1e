"""Brute force: configurations counted and simulated, the optimum beside the exact search's, the time of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.paper.exhibit import Exhibit, MarkdownTable
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


@dataclass(frozen=True)
class Setting:
    """The rows of one experiment."""

    name: str
    rows: tuple[Row, ...]

    @property
    def configurations(self) -> int:
        """Counted, over all outer choices."""
        return sum(int(row["configurations"]) for row in self.rows)

    @property
    def complete(self) -> tuple[Row, ...]:
        """The outer choices enumerated to their end."""
        return tuple(row for row in self.rows if row["complete"])

    @property
    def core_s(self) -> float:
        """Core seconds of all outer choices: those measured, and those worked out from the configurations simulated."""
        return sum(core_seconds(row) for row in self.rows)

    @property
    def simulation_us(self) -> float:
        """Core microseconds of one configuration, over all that were simulated."""
        simulated = sum(row["simulated"] for row in self.rows)
        return 1e6 * sum(row["cpu_s"] for row in self.rows) / simulated if simulated else 0.0

    @property
    def exact_s(self) -> float:
        """Seconds of the exact search, one outer choice after the other."""
        return sum(float(row["exact_s"]) for row in self.rows)

    @property
    def counts_agree(self) -> int:
        """Enumerated outer choices in which as many configurations were simulated as counted."""
        return sum(row["simulated"] == int(row["configurations"]) for row in self.complete)

    @property
    def same_times(self) -> int:
        """Enumerated outer choices with the exact search's optimum."""
        return sum(map(same_time, self.complete))

    @property
    def same_plans(self) -> int:
        """The same for the stages, layer by layer."""
        return sum(map(same_plan, self.complete))

    @property
    def optimum(self) -> Row | None:
        """The outer choice with the exact search's best plan; None where no plan fits."""
        planned = [row for row in self.rows if row.get("exact_ms") is not None]
        return min(planned, key=lambda row: float(row["exact_ms"]), default=None)

    @property
    def best(self) -> Row | None:
        """The outer choice with brute force's best plan."""
        planned = [row for row in self.complete if row.get("best_ms") is not None]
        return min(planned, key=lambda row: float(row["best_ms"]), default=None)


def settings(rows: Sequence[Row]) -> list[Setting]:
    """By experiment, in their order."""
    names = dict.fromkeys(row["experiment"] for row in rows)
    return [Setting(name, tuple(row for row in rows if row["experiment"] == name)) for name in names]


def core_seconds(row: Row) -> float:
    """Core seconds of an outer choice: measured where it is complete, else worked out from what was simulated."""
    if row["complete"]:
        return float(row["cpu_s"])
    return float(row["cpu_s"]) * int(row["configurations"]) / row["simulated"] if row["simulated"] else float("inf")


def duration(seconds: float) -> str:
    """Seconds to years, in the unit that suits."""
    for unit, length in (("years", 365.25 * 86_400), ("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.3g} {unit}" if seconds < 1e4 * length else f"{seconds / length:.2g} {unit}"
    return f"{seconds:.3g} s"


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
