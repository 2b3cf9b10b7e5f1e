"""What a right answer to a problem is, judged by trying everything."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from poseidon.cost.problem import Problem
from poseidon.search.backend import InProcess
from poseidon.search.options import SearchOptions
from poseidon.search.reference import all_configurations, exhaustive_search, reference_time
from poseidon.search.result import SearchResult, Solution, SolutionStatus, TerminationReason
from poseidon.search.run import Run
from poseidon.search.shard import Context
from poseidon.search.solve import solve
from poseidon.search.watch import Watch

SAME = 1e-9
"""Relative difference between times that count as the same: the contract's for `optimal`."""


def assert_solved(problem: Problem, options: SearchOptions | None = None) -> SearchResult:
    """Solves a problem and asserts that the answer is the exhaustive search's, proven."""
    result = solve([problem], options)
    best = exhaustive_search(problem)
    assert result.counters.bound_alarms == 0
    assert result.termination is TerminationReason.COMPLETE
    if best is None:
        assert (result.status, result.solutions) == (SolutionStatus.INFEASIBLE, ())
        assert math.isinf(result.lower_bound_ms)
        return result
    assert result.best is not None, f"the optimum is {best.iteration_time_ms} ms, but the search is {result.status}"
    assert result.best.iteration_time_ms == same(best.iteration_time_ms)
    assert result.status is SolutionStatus.OPTIMAL
    assert result.lower_bound_ms == same(best.iteration_time_ms)
    assert result.gap == 0.0
    assert_feasible(result.best)
    return result


def assert_feasible(solution: Solution) -> None:
    """Asserts that a plan keeps every rule of its problem and takes the time that it says."""
    assert solution.stages in set(all_configurations(solution.problem, solution.depths))
    time_ms = reference_time(solution.problem, solution.stages, solution.depths)
    assert solution.iteration_time_ms == same(time_ms)


def same(time_ms: float) -> object:
    """A time up to the last digits of its sums."""
    return pytest.approx(time_ms, rel=SAME, abs=SAME)


def best_of_each(problems: Sequence[Problem]) -> list[Solution]:
    """The best plan of each problem that has one, fastest first."""
    found = [best for problem in problems if (best := exhaustive_search(problem)) is not None]
    return sorted(found, key=lambda solution: solution.order_key)


def run_of(problems: Sequence[Problem], options: SearchOptions, watch: Watch | None = None) -> Run:
    """A search in this process."""
    return Run(Context(tuple(problems), options), InProcess(), watch or Watch())
