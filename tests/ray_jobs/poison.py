"""An outer choice at which every process dies that works on it."""

from __future__ import annotations

import os
import signal
from dataclasses import fields
from typing import Any

from poseidon.cost.problem import Problem

driver = 0
"""Id of the one process that survives; workers import this module anew."""


class Poisoned(Problem):
    """A problem whose kinds nobody but the driver may look at."""

    def __getattribute__(self, name: str) -> Any:
        if name == "kinds" and os.getpid() != driver:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def poisoned(problem: Problem) -> Poisoned:
    return Poisoned(**{field.name: getattr(problem, field.name) for field in fields(problem)})
