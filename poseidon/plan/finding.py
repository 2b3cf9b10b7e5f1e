"""What a check of a plan found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a check ended."""

    RIGHT = "ok"
    WRONG = "WRONG"
    NOT_CHECKED = "not re-checked"


@dataclass(frozen=True)
class Finding:
    """One line of the verdict table: what was checked, how it ended, and one sentence that says why."""

    check: str
    verdict: Verdict
    detail: str
