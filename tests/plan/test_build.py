from __future__ import annotations

from collections.abc import Callable

import pytest

from poseidon.plan.build import layer_ranges
from poseidon.plan.plan import Plan
from poseidon.plan.timing import pipeline_timeline
from poseidon.search.result import SolutionStatus


def test_layers_of_one_chunk_follow_one_another() -> None:
    assert layer_ranges([(3,), (2,), (4,)]) == [((0, 3),), ((3, 5),), ((5, 9),)]


def test_layers_of_chunks_go_round_the_stages() -> None:
    assert layer_ranges([(1, 2), (3, 4)]) == [((0, 1), (4, 6)), ((1, 4), (6, 10))]


def test_the_plan_of_the_example(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    pipeline = plan.pipeline
    assert plan.status is SolutionStatus.OPTIMAL
    assert plan.gap == 0
    assert sum(sum(stage.layers) for stage in pipeline.stages) == 8
    assert pipeline.num_devices == 4
    assert pipeline.idle == ()
    assert sum(pipeline.critical_path.stages) + pipeline.critical_path.transfers + (
        pipeline.critical_path.all_reduce
    ) == pytest.approx(1)
    assert pipeline.tokens_per_second == pytest.approx(16 * 1024 / pipeline.iteration_time_ms * 1e3)
    assert 0 < pipeline.mfu < 1
    assert 0 < pipeline.bubble_fraction < 1


def test_simulating_the_plan_gives_its_time_to_the_last_digit(make_plan: Callable[..., Plan]) -> None:
    pipeline = make_plan(search={"assignment": "stage"}).pipeline
    assert pipeline_timeline(pipeline).iteration_time_ms == pipeline.iteration_time_ms


def test_ranks_run_through_the_stages(make_plan: Callable[..., Plan]) -> None:
    pipeline = make_plan(search={"fixed_tp": 1}).pipeline
    assert [rank for stage in pipeline.stages for rank in stage.ranks] == list(range(pipeline.num_devices))


def test_alternatives_are_the_next_best_of_other_outer_choices(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(search={"top": 3})
    times = [plan.pipeline.iteration_time_ms, *(other.iteration_time_ms for other in plan.alternatives)]
    names = {plan.pipeline.outer_choice, *(other.outer_choice for other in plan.alternatives)}
    assert len(times) == 3
    assert times == sorted(times)
    assert len(names) == 3


def test_the_same_inputs_give_the_same_plan(make_plan: Callable[..., Plan]) -> None:
    first, second = make_plan(), make_plan()
    assert first.pipeline == second.pipeline
    assert first.lower_bound_ms == second.lower_bound_ms
