"""The policy `metis` on a small cluster, against what its authors publish about it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from poseidon.cost.placement import alike_nodes
from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.plan import Plan, Verdict, check_plan
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.search.rivals.metis import Slot, estimated_ms, intra_stage_plans, metis_search, slots_of
from poseidon.search.rivals.rival import RivalTask
from poseidon.search.rivals.stage_costs import StageCosts
from poseidon.search.watch import Watch

NODES = [
    {"accelerator": "fast", "count": 2, "devices": 4},
    {"accelerator": "slow", "count": 2, "devices": 4},
]
Write = Callable[..., Path]


def experiment_of(write: Write, memory_gb: float = 16.0, **changes: dict[str, Any]) -> Experiment:
    accelerators = {
        "fast": {"peak_tflops": 200.0, "memory_gb": memory_gb},
        "slow": {"peak_tflops": 100.0, "memory_gb": memory_gb},
    }
    cluster = {"nodes": NODES, "accelerators": accelerators} | changes.pop("cluster", {})
    changes.setdefault("search", {"policy": "metis"})
    return load_experiment(write(cluster=cluster, **changes))


def task_of(experiment: Experiment) -> RivalTask:
    return RivalTask(experiment, load_profile(experiment), Watch())


def test_groups_take_devices_in_the_order_of_node_types(write_experiment: Write) -> None:
    pools = alike_nodes(experiment_of(write_experiment).cluster)
    slow_first = slots_of(pools, ("slow", "fast"), (4, 4, 8))
    assert slow_first == (Slot(1, 0, 4), Slot(1, 4, 4), Slot(0, 0, 8))
    fast_first = slots_of(pools, ("fast", "slow"), (2, 2, 4, 8))
    assert fast_first == (Slot(0, 0, 2), Slot(0, 2, 2), Slot(0, 4, 4), Slot(1, 0, 8))


@pytest.mark.parametrize("sizes", [(16,), (4, 8, 4), (2, 4, 2, 8)])
def test_groups_of_two_types_or_of_parts_of_nodes_are_left_out(write_experiment: Write, sizes: tuple[int, ...]) -> None:
    assert slots_of(alike_nodes(experiment_of(write_experiment).cluster), ("fast", "slow"), sizes) is None


def test_with_memory_to_spare_all_stages_are_pure_data_parallel(write_experiment: Write) -> None:
    costs = StageCosts(task_of(experiment_of(write_experiment, memory_gb=64.0)))
    plans = list(intra_stage_plans(costs, (Slot(0, 0, 8), Slot(1, 0, 8)), 2))
    assert [stages for stages, _ in plans] == [[(0, 8, 1), (1, 8, 1)]]
    assert plans[0][1].attempts == 1


def test_tensor_parallelism_comes_only_where_memory_runs_short(write_experiment: Write) -> None:
    """From strategy to strategy one stage at a time halves its DP for twice the TP; the first that fits ends it."""
    training = {"micro_batch_sizes": [1, 2, 4], "distributed_optimizer": False}
    slots = (Slot(0, 0, 4), Slot(0, 4, 4), Slot(1, 0, 4), Slot(1, 4, 4))
    lengths = []
    for memory_gb in (0.7, 0.9, 1.0, 1.2, 2.0, 4.0):
        costs = StageCosts(task_of(experiment_of(write_experiment, memory_gb, training=training)))
        plans = list(intra_stage_plans(costs, slots, 4))
        for stages, _ in plans:
            assert [dp * tp for _, dp, tp in stages] == [4, 4, 4, 4]
        for (before, _), (after, _) in pairwise(plans):
            pairs = list(zip(before, after, strict=True))
            assert all(one[2] <= other[2] for one, other in pairs)
            assert any(one[2] < other[2] for one, other in pairs)
        assert all(balance.attempts > 1 for _, balance in plans[:-1])
        lengths.append(len(plans))
    assert max(lengths) > 3  # some were corrected again and again
    assert lengths[-1] == 1


def test_less_memory_means_more_tensor_parallelism(write_experiment: Write) -> None:
    """The same devices for the same stages: pure DP with 3 GB, TP with a third of that."""
    degrees = []
    for memory_gb in (3.0, 1.0):
        training = {"micro_batch_sizes": [1, 2, 4], "distributed_optimizer": False}
        costs = StageCosts(task_of(experiment_of(write_experiment, memory_gb, training=training)))
        plans = list(intra_stage_plans(costs, (Slot(0, 0, 4), Slot(0, 4, 4), Slot(1, 0, 4), Slot(1, 4, 4)), 4))
        degrees.append([tp for _, _, tp in plans[-1][0]])
    assert degrees[0] == [1, 1, 1, 1]
    assert max(degrees[1]) > 1


def test_faster_devices_get_more_layers(write_experiment: Write) -> None:
    model = {"num_layers": 30, "vocab_size": 64}
    costs = StageCosts(task_of(experiment_of(write_experiment, memory_gb=64.0, model=model)))
    (_, balance), *_ = intra_stage_plans(costs, (Slot(0, 0, 8), Slot(1, 0, 8)), 2)
    fast, slow = balance.layers
    times = [costs.stage(pool, 8, 1, 2).work_ms[30] for pool in (0, 1)]
    assert fast / slow == pytest.approx(times[1] / times[0], rel=0.2)
    assert fast > slow


def test_the_estimate_is_the_published_formula(write_experiment: Write) -> None:
    """Sum of stages + (M - 1) x the slowest + boundaries once + the slowest all-reduce, added up from the problem."""
    from poseidon.cost.build import ProblemBuilder

    task = task_of(experiment_of(write_experiment, memory_gb=64.0))
    costs = StageCosts(task)
    slots = (Slot(1, 0, 4), Slot(1, 4, 4), Slot(0, 0, 8))
    stages, layers, number = [(1, 4, 1), (1, 2, 2), (0, 4, 2)], (2, 2, 4), 4
    pipeline = costs.pipeline(stages, number)
    problem = ProblemBuilder(task.experiment, task.profile).build(pipeline.choice)
    work, reduced = [], []
    for index, (kind, count) in enumerate(zip(pipeline.kinds, layers, strict=True)):
        parts = [problem.kinds[kind].layers[0]] * count
        parts += [problem.kinds[kind].first] * (index == 0) + [problem.kinds[kind].last] * (index == 2)
        work.append(sum(part.forward_ms + part.backward_ms for part in parts))
        reduced.append(sum(part.all_reduce_ms for part in parts))
    kinds = pipeline.kinds
    sends = sum(problem.inter_node_ms[kinds[i]][kinds[i + 1]] for i in range(2))
    expected = sum(work) + (number - 1) * max(work) + sends + max(reduced)
    assert estimated_ms(costs, slots, stages, layers, number) == pytest.approx(expected, rel=1e-12)


def test_every_order_of_node_types_and_number_of_micro_batches_is_tried(write_experiment: Write) -> None:
    """All plans with memory to spare, counted by hand: 4 nodes of 4 devices, 8 layers, 16 sequences, one a micro-batch.

    Sequences in each of the two orders of types (a group of 4 fills a node):
    2 stages: 8 8; 4 stages: 4 4 4 4; 6 stages: 4 4 | 2 2 2 2, the other way round, and (4 2 2 or 2 2 4) twice: 6;
    7 stages: pairs of twos and one four, which may stand anywhere: 4; 8 stages: twos: 1. Other numbers: none.
    With one sequence a micro-batch all stages need the same DP, a divisor of the smallest group, and TP up to 4:
    DP 8, 4, 2 for two stages, 4, 2, 1 for four, 2, 1 for the others, each with its own number of micro-batches.
    """
    experiment = experiment_of(write_experiment, memory_gb=64.0, training={"micro_batch_sizes": [1]})
    answer = metis_search(task_of(experiment))
    assert answer.result.num_problems == 2 * (3 + 3 + 6 * 2 + 4 * 2 + 2)


@pytest.mark.parametrize("memory_gb", [0.6, 1.0, 16.0])
def test_its_plan_is_a_plan_like_any_other(write_experiment: Write, memory_gb: float) -> None:
    plan = find_plan(experiment_of(write_experiment, memory_gb))
    assert isinstance(plan, Plan)
    assert {finding.verdict for finding in check_plan(plan)} == {Verdict.RIGHT}
    assert plan.lower_bound_ms == 0
    assert plan.search.policy == "metis"


def test_a_plan_with_another_dp_in_every_stage_is_right_too(write_experiment: Write, tmp_path: Path) -> None:
    """With 0.6 GB a device one stage needs TP 4, the others do with 2; the plan survives its file and every check."""
    from poseidon.output.plan_file import read_plan, write_plan

    plan = find_plan(experiment_of(write_experiment, memory_gb=0.6))
    assert isinstance(plan, Plan)
    assert plan.pipeline.dp_differs
    assert len({(stage.dp, stage.tp) for stage in plan.pipeline.stages}) > 1
    assert {finding.verdict for finding in check_plan(plan)} == {Verdict.RIGHT}
    again = read_plan(write_plan(plan, tmp_path))
    assert again.pipeline.outer_choice == plan.pipeline.outer_choice
    assert [stage.dp for stage in again.pipeline.stages] == [stage.dp for stage in plan.pipeline.stages]
    assert {finding.verdict for finding in check_plan(again)} == {Verdict.RIGHT}


def test_the_same_in_every_run(write_experiment: Write) -> None:
    plans = [find_plan(experiment_of(write_experiment)) for _ in range(2)]
    assert all(isinstance(plan, Plan) for plan in plans)
    assert plans[0].pipeline == plans[1].pipeline  # type: ignore[union-attr]


def test_other_schedules_are_refused(write_experiment: Write) -> None:
    with pytest.raises(InputError, match="policy metis plans 1f1b only"):
        find_plan(experiment_of(write_experiment, training={"schedules": ["gpipe"]}))


def test_restrictions_are_kept(write_experiment: Write) -> None:
    for search in ({"target": "megatron"}, {"fixed_tp": 2}, {"fixed_pp": 4}, {"fixed_dp": 4}):
        plan = find_plan(experiment_of(write_experiment, search={"policy": "metis", **search}))
        assert isinstance(plan, Plan)
        assert {finding.verdict for finding in check_plan(plan)} == {Verdict.RIGHT}


def test_where_nothing_fits_it_says_so(write_experiment: Write) -> None:
    answer = find_plan(experiment_of(write_experiment, memory_gb=0.05))
    assert not isinstance(answer, Plan)
    assert "policy metis comes upon no plan that fits" in answer.reason
