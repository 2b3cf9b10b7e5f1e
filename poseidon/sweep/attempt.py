"""One try at a run in another process, which may be lost."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from poseidon.sweep.executor import MOST_RESUBMISSIONS, Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import Outcome
from poseidon.sweep.run import failed_outcome


@dataclass(frozen=True)
class Attempt:
    """A run that waits or is under way; `number` counts how many times it was begun."""

    run: Run
    number: int = 1
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def begun(self) -> Attempt:
        """The same, begun now."""
        return replace(self, started_at=datetime.now(UTC))

    def finished(self, outcome: Outcome) -> Finished:
        """The run with what came of it."""
        return Finished(self.run, outcome, self.number)

    def failed(self, reason: str) -> Finished:
        """The run as one that has no answer."""
        return self.finished(failed_outcome(reason, self.started_at, time.time() - self.started_at.timestamp()))

    def lost(self, how: str, waiting: deque[Attempt]) -> Finished | None:
        """The process was lost, as `how` says: the run waits again, before all others (None), unless it was begun too
        often.
        """
        if self.number <= MOST_RESUBMISSIONS:
            waiting.appendleft(replace(self, number=self.number + 1))
            return None
        return self.failed(f"{how}, {self.number} times in all")
