"""Whether an experiment has any plan at all, found quickly."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poseidon.cost import OuterChoice, costs
from poseidon.cost.outer import recompute_modes
from poseidon.cost.problem import Problem
from poseidon.errors import InputError
from poseidon.inputs import Experiment
from poseidon.planner import Narrow
from poseidon.profile import load_profile
from poseidon.search.exact import bound
from poseidon.search.options import SearchOptions
from poseidon.search.result import Solution
from poseidon.search.solve import solve

FIRST_PLAN = SearchOptions(gap=0.99, warmup_samples=100, time_limit_s=2.0)
"""A search for any plan; what it does not find in this time does not count."""


@dataclass(frozen=True)
class Example:
    """Some configuration, with its outer choice."""

    solution: Solution
    choice: OuterChoice


def problems_of(experiment: Experiment) -> list[tuple[OuterChoice, Problem]]:
    """All outer choices; raises InputError where there is none."""
    return list(costs(experiment, load_profile(experiment, recompute=recompute_modes(experiment))))


def first_plan(experiment: Experiment, narrow: Narrow | None = None) -> Example | None:
    """Some plan, not a good one; None where there is none, or none was found in time."""
    try:
        choices = problems_of(experiment)
    except InputError:
        return None
    narrowed = [item[1] if narrow is None else narrow(*item) for item in choices]
    problems = [problem for problem in narrowed if problem is not None and math.isfinite(bound(problem).bound_ms)]
    best = solve(problems, FIRST_PLAN).best
    if best is None:
        return None
    return Example(best, next(choice for choice, _ in choices if choice.name == best.name))
