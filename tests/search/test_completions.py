"""Counting what lies behind a partial configuration."""

import pytest

from poseidon.search.completions import Completions
from poseidon.search.count import count_configurations
from poseidon.search.reference import all_configurations, all_depths
from poseidon.search.space import space_of


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("schedule", ["1f1b", "interleaved_1f1b", "adaptive_1f1b"])
def test_all_configurations_lie_behind_the_empty_pipeline(random_problem, seed, schedule):
    problem = random_problem(seed, schedule, most_depth=2 if schedule == "adaptive_1f1b" else 1)
    total = sum(1 for depths in all_depths(problem) for _ in all_configurations(problem, depths))
    assert Completions(space_of(problem)).total == total == count_configurations(problem)


@pytest.mark.parametrize("seed", range(5))
def test_kinds_that_cannot_talk_are_not_counted_as_neighbours(random_problem, seed):
    problem = random_problem(seed, num_stages=4, cannot_talk=True)
    assert Completions(space_of(problem)).total == sum(1 for _ in all_configurations(problem))


def test_the_ways_on_from_each_first_stage_add_up(random_problem):
    problem = random_problem(1, num_types=2)
    space = space_of(problem)
    completions = Completions(space)
    behind = {}
    for configuration in all_configurations(problem):
        behind[configuration[0]] = behind.get(configuration[0], 0) + 1
    for _, kind, _, target, _ in space.edges[: space.first_edge[1]].tolist():
        for first, count in behind.items():
            if first.kind == kind:
                assert completions.after(target, kind, first.num_layers) == count
    assert sum(behind.values()) == completions.total > 0
