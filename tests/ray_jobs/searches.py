"""Searches that last a few seconds, and what must be the same wherever they run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from poseidon.cost import costs
from poseidon.cost.problem import Problem
from poseidon.inputs import load_experiment
from poseidon.profile import load_profile
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult
from poseidon.search.solve import solve

EXPERIMENTS = Path(__file__).parents[2] / "configs" / "experiments"
UNPRUNED = SearchOptions(policy="paper", stage_pruning=False, layer_pruning=False, warmup_samples=0)
"""Times every configuration, and keeps only what beats the best of all workers: a plan is found once or never."""


@cache
def long_problem() -> Problem:
    """Three million configurations: five seconds of one processor of 2026."""
    experiment = load_experiment(
        EXPERIMENTS / "setting1.yaml", search={"fixed_dp": 2, "fixed_tp": 1}, training={"micro_batch_sizes": [1]}
    )
    [problem] = (problem for _, problem in costs(experiment, load_profile(experiment)))
    return problem


@cache
def long_answer() -> SearchResult:
    """Of an undisturbed search in this process."""
    return solve([long_problem()], UNPRUNED)


def essence(result: SearchResult) -> dict[str, Any]:
    """What does not depend on where and how fast a search ran; times to the last digit."""
    return {
        "solutions": [(s.problem.name, s.stages, s.iteration_time_ms, s.depths) for s in result.solutions],
        "lower_bound_ms": result.lower_bound_ms,
        "status": result.status,
        "termination": result.termination,
        "warnings": result.warnings,
    }


def effort(result: SearchResult) -> tuple[int, int]:
    """What a search that prunes nothing does in any order: configurations and search nodes, each counted once."""
    return result.counters.simulations, result.counters.search_nodes
