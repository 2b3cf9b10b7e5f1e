"""The same answer on a Ray cluster as in this process, to the last digit."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from poseidon.cost.problem import Problem
from poseidon.inputs import load_experiment
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan
from poseidon.search.options import SearchOptions
from poseidon.search.solve import solve
from tests.judge import Draw
from tests.ray_jobs.searches import EXPERIMENTS, essence

if TYPE_CHECKING:
    from ray_jobs.backend import RayBackend

pytestmark = pytest.mark.ray
SETTINGS = ("setting1", "setting2", "setting3", "setting4", "setting5", "setting6-96", "setting6-192", "setting6-288")


def drawn(seed: int, most: int) -> list[list[Problem]]:
    """Searches over random outer choices, at least `most` of these in all."""
    draw, searches = Draw(seed), []
    for number in count():
        searches.append(draw.problems(number))
        if sum(map(len, searches)) >= most:
            return searches
    raise AssertionError


def test_two_hundred_random_problems(backend: RayBackend) -> None:
    searches = drawn(11, 200)
    for problems in searches:
        assert essence(solve(problems, backend=backend)) == essence(solve(problems)), problems


@pytest.mark.parametrize("options", [{"top": 3}, {"policy": "paper"}, {"policy": "brute-force", "top": 3}])
def test_other_policies_and_the_best_three(backend: RayBackend, options: dict[str, Any]) -> None:
    settings = SearchOptions(**options)
    for problems in drawn(12, 30):
        assert essence(solve(problems, settings, backend=backend)) == essence(solve(problems, settings)), problems


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_settings_of_the_paper(backend: RayBackend, setting: str) -> None:
    experiment = load_experiment(EXPERIMENTS / f"{setting}.yaml")
    here, there = find_plan(experiment), find_plan(experiment, backend=backend)
    assert isinstance(here, Plan)
    assert isinstance(there, Plan)
    assert there.search.backend == "ray"
    assert asdict(there) | {"search": None} == asdict(here) | {"search": None}
    assert there.search.termination == here.search.termination
