"""Same inputs, same plan."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.problem import Problem
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult
from poseidon.search.solve import solve
from tests.search.strategies import Space, examples, problems

TIES = Space(stages=(1, 4), equal_kinds=True, times=st.integers(0, 2).map(float))


def answer(result: SearchResult) -> tuple[object, ...]:
    return (
        [(solution.problem.name, solution.stages, solution.iteration_time_ms) for solution in result.solutions],
        [solution.depths for solution in result.solutions],
        (result.status, result.termination, result.lower_bound_ms),
        [time_ms for _, time_ms in result.curve],
        result.counters,
    )


@given(problem=problems(), seed=st.integers(0, 3))
@examples(30)
def test_the_same_problem_has_the_same_answer(problem: Problem, seed: int) -> None:
    options = SearchOptions(seed=seed, warmup_samples=20)
    assert answer(solve([problem], options)) == answer(solve([problem], options))


@given(several=st.lists(problems(TIES), min_size=2, max_size=4), seed=st.integers(0, 9), top=st.integers(1, 3))
@examples(40)
def test_the_order_of_the_outer_choices_does_not_matter(several: list[Problem], seed: int, top: int) -> None:
    choices = [replace(problem, name=f"choice {index}") for index, problem in enumerate(several)]
    shuffled = random.Random(seed).sample(choices, len(choices))
    options = SearchOptions(top=top)
    assert answer(solve(choices, options)) == answer(solve(shuffled, options))


@given(problem=problems(TIES), seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)))
@examples(30)
def test_the_seed_does_not_change_the_best_time(problem: Problem, seeds: tuple[int, int]) -> None:
    one, other = (solve([problem], SearchOptions(seed=seed, warmup_samples=3)) for seed in seeds)
    assert (one.status, len(one.solutions)) == (other.status, len(other.solutions))
    if one.best is not None and other.best is not None:
        assert abs(one.best.iteration_time_ms - other.best.iteration_time_ms) <= 1e-9 * one.best.iteration_time_ms
