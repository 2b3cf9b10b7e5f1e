"""What a comparison of predicted with measured or printed values consists of: rows, targets, a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Basis = Literal["measured", "printed"]
"""Where the observed values come from: a machine's clock, or a publication's own calculation."""
ErrorKind = Literal["relative", "absolute"]
"""How a row's error is told: as a share of the observed value, or as a difference in the row's unit."""


@dataclass(frozen=True)
class Row:
    """One predicted value beside the observed one, both in `unit`.

    `group` sorts rows into tables ("1F1B", "22B model"); `held_out` says that no fit has seen the row; `note` is for
    people: a known defect of the observed value, say.
    """

    label: str
    predicted: float
    observed: float
    unit: str
    group: str = ""
    held_out: bool = True
    note: str = ""

    @property
    def difference(self) -> float:
        """Predicted minus observed."""
        return self.predicted - self.observed

    @property
    def relative_error(self) -> float:
        """The difference as a share of the observed value, which must not be 0; positive: predicted too much."""
        return self.difference / self.observed

    def error(self, kind: ErrorKind) -> float:
        """The row's error, with its sign."""
        return self.relative_error if kind == "relative" else self.difference


@dataclass(frozen=True)
class Target:
    """One thing that must hold: `value`, which `description` names, is at most (or at least) `limit`, both in `unit`.

    Unit "%" means that `value` and `limit` are shares (0.05 is shown as 5 %). Where it is not met `cause` names the
    reason, the evidence for it and what data would settle it.
    """

    description: str
    value: float
    limit: float
    unit: str = ""
    sense: Literal["at most", "at least"] = "at most"
    cause: str = ""

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of the limit; not where it is NaN."""
        return self.value <= self.limit if self.sense == "at most" else self.value >= self.limit


@dataclass(frozen=True)
class Comparison:
    """One comparison: its rows, what must hold of them, and a summary for people.

    `name` is the word for it on the command line ("zero-bubble"), `source` says who measured or printed what, where.
    `notes` are sentences that belong below the table: how it was predicted, what was left out and why.
    """

    name: str
    title: str
    source: str
    basis: Basis
    rows: tuple[Row, ...]
    targets: tuple[Target, ...]
    summary: str
    error_kind: ErrorKind = "relative"
    notes: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether every target is met."""
        return all(target.met for target in self.targets)

    @property
    def groups(self) -> tuple[str, ...]:
        """The rows' groups, each once, in the order of the rows."""
        return tuple(dict.fromkeys(row.group for row in self.rows))

    def errors(self, group: str | None = None) -> tuple[float, ...]:
        """The errors of all rows, or of a group's."""
        return tuple(row.error(self.error_kind) for row in self.rows if group is None or row.group == group)


def mean_absolute(errors: tuple[float, ...]) -> float:
    """The mean of the errors without their signs; there must be one."""
    return sum(map(abs, errors)) / len(errors)


def largest_absolute(errors: tuple[float, ...]) -> float:
    """The largest of the errors without their signs; there must be one."""
    return max(map(abs, errors))
