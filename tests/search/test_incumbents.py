"""Sampling and local moves only ever come up with plans that fit, and with their true times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.problem import Problem
from poseidon.search._local_search import LocalSearch
from poseidon.search._sampling import Sampler
from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import most_layers_after
from poseidon.search.arrays import SearchArrays, search_arrays
from poseidon.search.incumbents import Incumbents
from poseidon.search.reference import all_configurations, reference_time
from poseidon.search.result import Solution, StageChoice
from tests.search.checking import assert_feasible
from tests.search.example import BEST, BEST_MS, EXAMPLE, FAST, HARD, SLOW
from tests.search.strategies import ONE_CHUNK, Space, examples, problems

FIXED_DEPTH = Space(schedules=("1f1b", "eager_1f1b", "gpipe"))


def sampler_of(arrays: SearchArrays, seed: int) -> Sampler:
    graph = StageGraph(arrays)
    limits = np.ascontiguousarray(arrays.max_layers.max(axis=2))
    return Sampler(graph, arrays, most_layers_after(graph, limits, arrays.least_layers), seed)


def solution_of(problem: Problem, kinds: np.ndarray, layers: np.ndarray, time_ms: float) -> Solution:
    chosen = zip(kinds.tolist(), np.asarray(layers).reshape(len(kinds), -1).tolist(), strict=True)
    return Solution(problem, tuple(StageChoice(kind, tuple(split)) for kind, split in chosen), time_ms)


@given(problem=problems(FIXED_DEPTH), seed=st.integers(0, 2**64 - 1))
@examples(50)
def test_samples_fit(problem: Problem, seed: int) -> None:
    sampler = sampler_of(search_arrays(problem), seed)
    feasible = set(all_configurations(problem))
    for _ in range(10):
        drawn = sampler.draw()
        if drawn is not None:
            kinds, layers, _ = drawn
            assert solution_of(problem, kinds, layers, 0.0).stages in feasible


@given(problem=problems(Space(schedules=ONE_CHUNK)), seed=st.integers(0, 5))
@examples(40)
def test_the_best_sample_comes_with_its_time(problem: Problem, seed: int) -> None:
    best = sampler_of(search_arrays(problem), seed).best_of(20)
    if best is None:
        return
    time_ms, kinds, layers, warmups = best
    solution = solution_of(problem, kinds, layers, time_ms)
    if problem.schedule != "adaptive_1f1b":
        assert_feasible(solution)
    assert warmups[-1] == 1 or problem.schedule == "gpipe"


def test_the_same_seed_draws_the_same_samples() -> None:
    arrays = search_arrays(HARD)
    one, same, other = (sampler_of(arrays, seed).best_of(5) for seed in (3, 3, 4))
    assert one is not None
    assert same is not None
    assert other is not None
    assert one[0] == same[0]
    assert (one[1].tolist(), one[2].tolist()) == (same[1].tolist(), same[2].tolist())
    assert one[0] != other[0]


def test_many_samples_of_the_example_find_its_best_plan() -> None:
    best = sampler_of(search_arrays(EXAMPLE), 0).best_of(200)
    assert best is not None
    assert best[0] == BEST_MS


@given(problem=problems(FIXED_DEPTH))
@examples(40)
def test_local_moves_end_at_a_plan_that_fits_and_is_no_slower(problem: Problem) -> None:
    arrays = search_arrays(problem)
    search = LocalSearch(arrays, StageGraph(arrays))
    for configuration in list(all_configurations(problem))[:5]:
        before_ms = reference_time(problem, configuration)
        kinds = np.array([stage.kind for stage in configuration], dtype=np.int32)
        layers = np.array([stage.num_layers for stage in configuration], dtype=np.int32)
        time_ms, kinds, layers = search.improve(kinds, layers, before_ms, 1000)
        assert time_ms <= before_ms
        assert_feasible(solution_of(problem, kinds, layers, time_ms))


def test_local_moves_lead_from_the_worst_plan_of_the_example_to_the_best() -> None:
    arrays = search_arrays(EXAMPLE)
    worst = np.array([FAST, SLOW], dtype=np.int32), np.array([1, 2], dtype=np.int32)
    time_ms, kinds, layers = LocalSearch(arrays, StageGraph(arrays)).improve(*worst, 42.0, 1000)
    assert (time_ms, solution_of(EXAMPLE, kinds, layers, time_ms).stages) == (BEST_MS, BEST)


def offered(time_ms: float, name: str) -> Solution:
    problem = EXAMPLE.__class__(**{**vars(EXAMPLE), "name": name})
    return Solution(problem, BEST, time_ms)


def test_what_comes_late_does_not_displace_the_chosen_plan() -> None:
    # Two equally fast plans whose times differ in the last digit: on Ray the news of one can come after the choice.
    incumbents = Incumbents(2)
    found, chosen = offered(math.nextafter(7.0, 0.0), "a"), offered(7.0, "a")
    incumbents.offer(found, 1.0)
    incumbents.replace(chosen)
    assert not incumbents.offer(found, 2.0)
    assert incumbents.solutions == (chosen,)
    assert incumbents.offer(offered(8.0, "b"), 3.0)


def test_incumbents_keep_the_best_of_each_problem() -> None:
    incumbents = Incumbents(2)
    assert incumbents.best_ms == incumbents.cutoff_ms == float("inf")
    incumbents.offer(offered(9.0, "a"), 1.0)
    assert (incumbents.best_ms, incumbents.cutoff_ms) == (9.0, float("inf"))
    incumbents.offer(offered(7.0, "b"), 2.0)
    incumbents.offer(offered(8.0, "c"), 3.0)
    incumbents.offer(offered(8.5, "b"), 4.0)
    assert [(one.problem.name, one.iteration_time_ms) for one in incumbents.solutions] == [("b", 7.0), ("c", 8.0)]
    assert (incumbents.best_ms, incumbents.cutoff_ms) == (7.0, 8.0)
    assert incumbents.cutoff_for("b") == 7.0
    assert incumbents.cutoff_for("a") == pytest.approx(8.0)
    assert incumbents.curve == [(1.0, 9.0), (2.0, 7.0)]
