"""Random configurations before the search."""

from poseidon.search.reference import all_configurations
from poseidon.search.space import space_of
from poseidon.search.warmup import random_configurations


def drawn(problems, count, seed):
    spaces = [space_of(problem) for problem in problems]
    return {
        problems[index].name: [spaces[index].solution(*sample, 0.0).stages for sample in samples]
        for index, samples in random_configurations(spaces, count, seed)
    }


def test_samples_are_feasible_and_spread_over_the_outer_choices(random_problem):
    problems = [
        random_problem(seed, schedule) for seed, schedule in ((1, "1f1b"), (4, "gpipe"), (4, "interleaved_1f1b"))
    ]
    samples = drawn(problems, 300, seed=7)
    assert sum(map(len, samples.values())) == 300
    for problem in problems:
        assert len(samples[problem.name]) > 60
        assert set(samples[problem.name]) <= set(all_configurations(problem))
        assert len(set(samples[problem.name])) > 1


def test_the_seed_decides(random_problem):
    problems = [random_problem(seed) for seed in range(3)]
    assert drawn(problems, 50, seed=1) == drawn(problems, 50, seed=1) != drawn(problems, 50, seed=2)


def test_samples_keep_to_kinds_that_can_talk(random_problem):
    problem = random_problem(2, num_stages=4, cannot_talk=True)
    feasible = set(all_configurations(problem))
    assert set(drawn([problem], 100, seed=0).get(problem.name, [])) <= feasible


def test_none_are_asked_for_or_none_exist(random_problem):
    assert drawn([random_problem(0)], 0, seed=0) == {}
