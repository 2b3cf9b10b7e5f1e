"""A problem that kills every process but the one that made it, and one that no search can lay out elsewhere."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, fields
from typing import Any

from poseidon.cost.problem import Problem


@dataclass(frozen=True)
class Poisoned(Problem):
    """A worker that asks for its schedule is killed, as by the system when memory is short."""

    home: int = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "schedule" and os.getpid() != object.__getattribute__(self, "home"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


@dataclass(frozen=True)
class Faulty(Problem):
    """A worker that asks for its schedule gets an error."""

    home: int = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "schedule" and os.getpid() != object.__getattribute__(self, "home"):
            raise ArithmeticError("no such schedule here")
        return super().__getattribute__(name)


def spoilt(kind: type[Poisoned] | type[Faulty], problem: Problem) -> Problem:
    """The problem, spoilt for every process but this one."""
    values = {field.name: getattr(problem, field.name) for field in fields(Problem)}
    return kind(**values, home=os.getpid())
