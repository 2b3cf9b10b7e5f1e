"""Configurations that follow the old plan, for a tolerance to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from poseidon.cost import OuterChoice
from poseidon.cost.problem import Problem
from poseidon.plan import Pipeline, Plan
from poseidon.planner import earlier_plan
from poseidon.search.exact import bound
from poseidon.search.options import SearchOptions
from poseidon.search.result import Solution, StageChoice
from poseidon.search.solve import solve
from poseidon.search.warm_start import starting_solutions

MOST = 6
"""Outer choices in which the old order of accelerators is tried."""
EFFORT = SearchOptions(gap=1e-3, node_limit=2000, warmup_samples=0)
"""The search for the best layers of one order."""

Choices = Mapping[str, tuple[OuterChoice, Problem]]


def solution_of(pipeline: Pipeline, problem: Problem) -> Solution:
    """A planned pipeline as a solution of its problem."""
    names = [kind.name for kind in problem.kinds]
    stages = tuple(StageChoice(names.index(stage.kind), stage.layers) for stage in pipeline.stages)
    return Solution(problem, stages, pipeline.iteration_time_ms, pipeline.depths)


def like_before(old: Plan, choices: Choices, limit_ms: float) -> list[Solution]:
    """The old plan's order of accelerators in the outer choices that can keep to the limit, with its best layers there.

    Outer choices with the old DP and TP degrees come first: their shards are cut as they were.
    """
    first_degrees = (old.pipeline.dp, old.pipeline.tp)
    bounds = {name: bound(problem).bound_ms for name, (_, problem) in choices.items()}
    ordered = sorted(
        (name for name in choices if bounds[name] <= limit_ms),
        key=lambda name: ((choices[name][0].dp, choices[name][0].tp) != first_degrees, bounds[name], name),
    )
    found = []
    for start in starting_solutions([choices[name][1] for name in ordered[:MOST]], earlier_plan(old)):
        best = solve([_in_order(start)], EFFORT).best
        if best is not None and best.iteration_time_ms <= limit_ms:
            found.append(replace(best, problem=start.problem))
    return found


def _in_order(start: Solution) -> Problem:
    """The solution's problem with its kinds in the solution's order alone."""
    problem = start.problem
    kinds = []
    for number, kind in enumerate(problem.kinds):
        rows = zip(problem.places, kind.max_layers, strict=True)
        limits = tuple(row if start.stages[place.stage].kind == number else (0,) * len(row) for place, row in rows)
        kinds.append(replace(kind, max_layers=limits))
    return replace(problem, kinds=tuple(kinds))
