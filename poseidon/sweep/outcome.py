"""What a run came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from poseidon.plan.plan import NoPlan, Plan
from poseidon.search.result import SolutionStatus
from poseidon.sweep.host import Host


class RunStatus(StrEnum):
    """What is known after a run."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIME_LIMIT = "time-limit"
    """The time (or search node) limit came before any plan."""
    REFUSED = "refused"
    """The inputs can't be used."""
    ERROR = "error"
    """The run ended without an answer: its process died, or its plan failed our own check."""


@dataclass(frozen=True)
class Trouble:
    """Why a run has neither a plan nor a proof that there is none."""

    status: RunStatus
    reason: str


@dataclass(frozen=True)
class Outcome:
    """The answer of a run, when it began, how long it took in all and where."""

    answer: Plan | NoPlan | Trouble
    started_at: datetime
    """In UTC."""
    seconds: float
    host: Host

    @property
    def status(self) -> RunStatus:
        """What is known."""
        match self.answer:
            case Trouble(status=status):
                return status
            case NoPlan(status=SolutionStatus.INFEASIBLE):
                return RunStatus.INFEASIBLE
            case NoPlan():
                return RunStatus.TIME_LIMIT
            case Plan(status=status):
                return RunStatus(status.value)

    @property
    def reason(self) -> str:
        """Why there is no plan; empty when there is one."""
        return "" if isinstance(self.answer, Plan) else self.answer.reason
