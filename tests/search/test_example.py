"""The example of this room, worked out by hand in `example.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poseidon.search.count import count_configurations
from poseidon.search.evaluate import configuration_time
from poseidon.search.options import SearchOptions
from poseidon.search.reference import all_configurations, exhaustive_search, reference_time
from poseidon.search.result import SolutionStatus, StageChoice, TerminationReason
from poseidon.search.solve import solve
from tests.search.checking import same
from tests.search.example import BEST, BEST_MS, EXAMPLE, FAST, SLOW, TIMES_MS


@pytest.mark.parametrize(("stages", "time_ms"), TIMES_MS.items())
def test_each_configuration_takes_what_it_takes_by_hand(stages: tuple[tuple[int, int], ...], time_ms: float) -> None:
    configuration = tuple(StageChoice(kind, (layers,)) for kind, layers in stages)
    assert reference_time(EXAMPLE, configuration) == time_ms
    assert configuration_time(EXAMPLE, configuration) == time_ms


def test_there_are_four_configurations() -> None:
    found = {tuple((stage.kind, stage.num_layers) for stage in one) for one in all_configurations(EXAMPLE)}
    assert found == set(TIMES_MS)
    assert count_configurations(EXAMPLE) == 4


def test_the_search_finds_the_best_one_and_proves_it() -> None:
    result = solve([EXAMPLE])
    assert result.best is not None
    assert (result.best.stages, result.best.iteration_time_ms) == (BEST, BEST_MS)
    assert (result.status, result.termination) == (SolutionStatus.OPTIMAL, TerminationReason.COMPLETE)
    assert (result.lower_bound_ms, result.gap) == (same(BEST_MS), 0.0)
    assert (result.num_problems, result.counters.bound_alarms, result.warnings) == (1, 0, ())


def test_the_exhaustive_search_agrees() -> None:
    best = exhaustive_search(EXAMPLE)
    assert best is not None
    assert (best.stages, best.iteration_time_ms) == (BEST, BEST_MS)


def test_it_needs_no_warm_up_samples() -> None:
    result = solve([EXAMPLE], SearchOptions(warmup_samples=0))
    assert result.best is not None
    assert result.best.stages == BEST


def test_a_limit_of_one_layer_moves_the_layers_elsewhere() -> None:
    fast = replace(EXAMPLE.kinds[FAST], max_layers=((2,), (1,)))
    result = solve([replace(EXAMPLE, kinds=(fast, EXAMPLE.kinds[SLOW]))])
    assert result.best is not None
    assert result.best.iteration_time_ms == 30.0
    assert result.best.stages == (StageChoice(SLOW, (2,)), StageChoice(FAST, (1,)))


def test_two_nodes_that_cannot_talk_leave_nothing() -> None:
    silent = (((1.0, float("inf")), (1.0, 1.0)),)
    result = solve([replace(EXAMPLE, inter_node_ms=silent[0])])
    assert (result.status, result.solutions, result.lower_bound_ms) == (SolutionStatus.INFEASIBLE, (), float("inf"))
    assert result.gap == float("inf")
