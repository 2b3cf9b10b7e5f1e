"""The compiled enumeration beside its plain-Python twin."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest

from poseidon.search.completions import Completions
from poseidon.search.evaluate import configuration_time
from poseidon.search.paper_reference import enumerate_in_python, partial_time, rises_and_falls
from poseidon.search.reference import all_configurations, reference_time
from poseidon.search.result import StageChoice
from poseidon.search.space import space_of
from poseidon.search.warmup import random_configurations

SCHEDULES = ("1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b")
RULES = [(True, True), (True, False), (False, True), (False, False)]


def configurations_behind(space, cuts):
    completions = Completions(space)
    return sum(int(cuts[at]) * completions.after(*map(int, at)) for at in zip(*np.nonzero(cuts), strict=True))


def assert_same_as_twin(problem, cutoff_ms, stage_pruning, layer_pruning):
    space = space_of(problem)
    search = space.search(stage_pruning, layer_pruning, cutoff_ms)
    found = None
    while not search.done:
        search.run(200)
        if search.improved:
            found = space.solution(*search.best, search.best_ms)
    twin = enumerate_in_python(problem, cutoff_ms, stage_pruning=stage_pruning, layer_pruning=layer_pruning)
    by_stage, by_layer = search.cuts
    assert search.num_simulations == twin.simulations
    assert configurations_behind(space, by_stage) == twin.pruned_by_stage
    assert configurations_behind(space, by_layer) == twin.pruned_by_layer
    assert search.best_ms == pytest.approx(twin.best_ms, rel=1e-12)
    assert (found.stages if found else None) == twin.best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("stage_pruning", "layer_pruning"), RULES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_simulates_and_prunes_what_its_twin_does(random_problem, seed, schedule, stage_pruning, layer_pruning):
    assert_same_as_twin(random_problem(seed, schedule), math.inf, stage_pruning, layer_pruning)


@pytest.mark.parametrize("seed", range(10))
def test_a_time_to_beat_prunes_as_in_its_twin(random_problem, seed):
    problem = random_problem(seed)
    times = sorted(reference_time(problem, configuration) for configuration in all_configurations(problem))
    for cutoff_ms in {times[0], times[len(times) // 20], times[len(times) // 2]} if times else ():
        assert_same_as_twin(problem, cutoff_ms * (1 + 1e-9), True, True)


@pytest.mark.parametrize("seed", range(8))
def test_mixed_layers_are_costed_at_their_own_places(random_problem, seed):
    assert_same_as_twin(random_problem(seed, num_types=2), math.inf, True, True)


@pytest.mark.parametrize("seed", range(8))
def test_kinds_that_cannot_talk_are_never_neighbours(random_problem, seed):
    assert_same_as_twin(random_problem(seed, num_stages=4, cannot_talk=True), math.inf, True, True)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_partial_configuration_is_never_slower_than_what_it_leads_to(random_problem, seed, schedule):
    problem = random_problem(seed, schedule)
    for configuration in list(all_configurations(problem))[::7]:
        time_ms = reference_time(problem, configuration)
        for count in range(1, problem.num_stages + 1):
            assert partial_time(problem, configuration, count) <= time_ms * (1 + 1e-12)


@pytest.mark.parametrize(
    ("layers", "ridge"),
    [
        ((1, 2, 2, 1), True),
        ((3, 2, 1, 1), True),
        ((1, 1, 2, 3), True),
        ((2, 2), True),
        ((2, 1, 2), False),
        ((3, 3, 2, 3), False),
    ],
)
def test_a_ridge_rises_and_then_falls(layers, ridge):
    assert rises_and_falls(tuple(StageChoice(0, (count,)) for count in layers)) is ridge


def test_a_ridge_is_asked_of_each_kind_alone():
    stages = [(0, 2), (1, 5), (0, 1), (1, 6), (0, 1), (1, 4)]
    assert rises_and_falls(tuple(StageChoice(kind, (count,)) for kind, count in stages))


@pytest.mark.parametrize("schedule", [*SCHEDULES, "adaptive_1f1b"])
def test_it_times_a_single_configuration(random_problem, schedule):
    space = space_of(random_problem(3, schedule, most_depth=2 if schedule == "adaptive_1f1b" else 1))
    search = space.search(True, True, 1.0)
    for _, samples in random_configurations([space], 20, seed=1):
        for path, layers in samples:
            time_ms = search.time(path, layers)
            solution = space.solution(path, layers, time_ms)
            assert time_ms == pytest.approx(
                configuration_time(space.problem, solution.stages, solution.depths), rel=1e-12
            )
    assert search.num_simulations == 0
    assert not search.improved


def test_it_refuses_to_time_what_is_no_configuration(random_problem):
    space = space_of(random_problem(0))
    search = space.search(False, False, math.inf)
    (_, [(path, layers)]), *_ = random_configurations([space], 1, seed=0)
    with pytest.raises(ValueError, match="no path"):
        search.time(path[::-1].copy(), layers)
    with pytest.raises(ValueError, match="more layers than fit"):
        search.time(path, layers + 1)
    with pytest.raises(ValueError, match="one edge and one count"):
        search.time(path[1:], layers)
    search.run(1_000_000)
    with pytest.raises(ValueError, match="that runs"):
        search.time(path, layers)


def test_other_threads_go_on_while_it_runs(random_problem):
    problem = replace(random_problem(0, num_stages=4), num_micro_batches=64, num_layers=60)
    wide = tuple(replace(kind, max_layers=((60,),) * 4) for kind in problem.kinds)
    search = space_of(replace(problem, kinds=wide)).search(False, False, 0.0)
    thread = threading.Thread(target=search.run, args=(300_000_000,))
    thread.start()
    beats = 0
    while thread.is_alive():
        thread.join(timeout=0.001)
        beats += 1
    assert beats > 5
