from __future__ import annotations

import math

import pytest

from poseidon.cost.problem import Problem
from poseidon.plan.check_graph import Steps
from poseidon.plan.check_trial import Trial
from poseidon.search.reference import all_configurations, all_depths, exhaustive_search


@pytest.mark.parametrize("everything", [True, False], ids=["everything", "what the bound leaves"])
def test_it_finds_what_is_faster_and_nothing_else(problem: Problem, everything: bool) -> None:
    best = exhaustive_search(problem)
    trial = Trial(Steps(10_000_000), 10_000_000)
    if best is None:
        assert trial.faster_than(problem, math.inf, everything=everything) is None
        return
    time_ms = best.iteration_time_ms
    assert trial.faster_than(problem, time_ms * (1 - 1e-9), everything=everything) is None
    found = trial.faster_than(problem, time_ms * (1 + 1e-9), everything=everything)
    assert found == pytest.approx(time_ms, rel=1e-9)
    assert not trial.is_over


def test_it_tries_every_configuration(problem: Problem) -> None:
    trial = Trial(Steps(10_000_000), 10_000_000)
    trial.faster_than(problem, 0.0, everything=True)
    expected = sum(1 for depths in all_depths(problem) for _ in all_configurations(problem, depths))
    assert trial.tried == expected


def test_it_says_when_the_effort_is_used_up(problem: Problem) -> None:
    trial = Trial(Steps(10_000_000), 0)
    trial.faster_than(problem, 0.0, everything=True)
    assert trial.is_over == (exhaustive_search(problem) is not None)
