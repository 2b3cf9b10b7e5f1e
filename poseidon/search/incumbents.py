"""The best plans so far, at most one for each outer choice."""

from __future__ import annotations

import math

from poseidon.search.result import Solution


class Incumbents:
    """Keeps the `count` fastest solutions of different problems, ties broken by the declared order of solutions.

    `cutoff_ms` is the time that a problem's plan must beat to be of interest: the slowest kept one, infinite while
    there are fewer.
    """

    def __init__(self, count: int) -> None:
        """`count` is how many plans are asked for (`top`)."""
        self._count = count
        self._by_problem: dict[str, Solution] = {}
        self.curve: list[tuple[float, float]] = []

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """The kept solutions, fastest first."""
        return tuple(sorted(self._by_problem.values(), key=lambda solution: solution.order_key)[: self._count])

    @property
    def best_ms(self) -> float:
        """Time of the best plan; infinite before the first."""
        return min((solution.iteration_time_ms for solution in self._by_problem.values()), default=math.inf)

    @property
    def cutoff_ms(self) -> float:
        """The time that a plan of a problem without one must beat."""
        kept = self.solutions
        return kept[-1].iteration_time_ms if len(kept) == self._count else math.inf

    def cutoff_for(self, name: str) -> float:
        """The time that a plan of this problem must beat to change anything."""
        own = self._by_problem.get(name)
        return min(self.cutoff_ms, own.iteration_time_ms) if own else self.cutoff_ms

    def offer(self, solution: Solution, seconds: float) -> None:
        """Keeps a solution if it is the best of its problem; notes the moment if it is the best of all."""
        name = solution.problem.name
        known = self._by_problem.get(name)
        if known is not None and known.order_key <= solution.order_key:
            return
        if solution.iteration_time_ms < self.best_ms:
            self.curve.append((seconds, solution.iteration_time_ms))
        self._by_problem[name] = solution
