"""The rows of brute force, added up by setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.paper.studies.brute_force import same_plan, same_time
from poseidon.paper.study import Row


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
