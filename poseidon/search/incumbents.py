"""The best plans so far, at most one for each outer choice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from poseidon.search.tolerance import TIE


def ranks_of(names: Iterable[str]) -> dict[str, int]:
    """The place of each outer choice in the order that breaks ties."""
    return {name: rank for rank, name in enumerate(sorted(names))}


class Entry(Protocol):
    """A plan, as far as its place among others goes."""

    @property
    def name(self) -> str:
        """Of its problem."""

    @property
    def iteration_time_ms(self) -> float:
        """Its time."""

    @property
    def order_key(self) -> Any:
        """The declared total order."""


Plan = TypeVar("Plan", bound=Entry)


class Incumbents(Generic[Plan]):
    """Keeps the `count` fastest solutions of different problems.

    Times within the fraction `tie` of each other count as equal; among equals the problem whose name comes first wins.
    `cutoff_ms` is the time that a problem's plan must beat to be of interest: the slowest kept one, infinite while
    there are fewer.
    """

    def __init__(self, count: int, tie: float = TIE) -> None:
        """`count` is how many plans are asked for (`top`)."""
        self._count = count
        self._tie = tie
        self._by_problem: dict[str, Plan] = {}
        self._chosen: set[str] = set()
        self._kept: tuple[Plan, ...] = ()
        self.curve: list[tuple[float, float]] = []

    @property
    def solutions(self) -> tuple[Plan, ...]:
        """The kept solutions, fastest first."""
        return self._kept

    @property
    def best_ms(self) -> float:
        """Time of the fastest plan; infinite before the first."""
        return min((solution.iteration_time_ms for solution in self._by_problem.values()), default=math.inf)

    @property
    def cutoff_ms(self) -> float:
        """The time that a plan of a problem without one must beat."""
        return self._kept[-1].iteration_time_ms if len(self._kept) == self._count else math.inf

    @property
    def cutoff_name(self) -> str:
        """The problem whose plan has that time; empty where there is none."""
        return self._kept[-1].name if len(self._kept) == self._count else ""

    def cutoff_for(self, name: str) -> float:
        """The time that a plan of this problem must beat to change anything."""
        own = self._by_problem.get(name)
        cutoff_ms = self.cutoff_ms * (1 + self._tie) if name < self.cutoff_name else self.cutoff_ms
        return min(cutoff_ms, own.iteration_time_ms) if own else cutoff_ms

    def offer(self, solution: Plan, seconds: float) -> bool:
        """Keeps a solution if it is the best of its problem, and notes the moment if it is the best of all.

        Returns whether the kept solutions changed.
        """
        name = solution.name
        known = self._by_problem.get(name)
        if name in self._chosen or (known is not None and known.order_key <= solution.order_key):
            return False
        if solution.iteration_time_ms < self.best_ms:
            self.curve.append((seconds, solution.iteration_time_ms))
        self._by_problem[name] = solution
        before, self._kept = self._kept, self._best()
        return before != self._kept

    def replace(self, solution: Plan) -> None:
        """Puts the chosen one of several equally fast plans of a problem in the place of the one that was found.

        It stays there: what a worker has sent before everything was proven, and comes only now, changes nothing more.
        """
        self._chosen.add(solution.name)
        self._by_problem[solution.name] = solution
        self._kept = self._best()

    def _best(self) -> tuple[Plan, ...]:
        left = sorted(self._by_problem.values(), key=lambda solution: solution.order_key)
        best: list[Plan] = []
        while left and len(best) < self._count:
            equal = [s for s in left if s.iteration_time_ms <= left[0].iteration_time_ms * (1 + self._tie)]
            best.append(min(equal, key=lambda solution: solution.name))
            left.remove(best[-1])
        return tuple(best)
