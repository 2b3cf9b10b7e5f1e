"""The policy `hexiscale` on a small cluster: devices by bandwidth and type, layers by memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.cost.placement import alike_nodes
from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.plan import Plan, Verdict, check_plan
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.search.evaluate import configuration_times
from poseidon.search.result import StageChoice
from poseidon.search.rivals.device_graph import bandwidth_gbps, merged_chain
from poseidon.search.rivals.hexiscale import estimated_ms, hexiscale_search
from poseidon.search.rivals.rival import RivalTask
from poseidon.search.rivals.stage_costs import StageCosts
from poseidon.search.watch import Watch
from poseidon.simulate.static_formula import static_time_ms

Write = Callable[..., Path]
LINKS = {
    "intra_node": {"bandwidth_gbps": 800.0},
    "inter_node": {"bandwidth_gbps": 100.0},
    "cross_cluster": {"bandwidth_gbps": 10.0},
}
TYPES = {
    "a": {"peak_tflops": 200.0, "memory_gb": 24.0},
    "b": {"peak_tflops": 100.0, "memory_gb": 12.0},
    "c": {"peak_tflops": 150.0, "memory_gb": 12.0},
}


def experiment_of(write: Write, cluster: dict[str, Any] | None = None, **changes: dict[str, Any]) -> Experiment:
    nodes = [{"accelerator": name, "count": 1, "devices": 4} for name in TYPES]
    parts = {"accelerators": TYPES, "nodes": nodes, "links": LINKS} | (cluster or {})
    changes.setdefault("search", {"policy": "hexiscale"})
    return load_experiment(write(cluster=parts, **changes))


def task_of(experiment: Experiment) -> RivalTask:
    return RivalTask(experiment, load_profile(experiment), Watch())


def test_the_heaviest_edges_are_inside_the_chain(write_experiment: Write) -> None:
    """a and c stand in one cluster, b in another: only one slow edge is left in the chain, and b is at its end."""
    nodes = [{"accelerator": name, "count": 1, "devices": 4, "cluster": "x" if name != "b" else "y"} for name in TYPES]
    cluster = experiment_of(write_experiment, {"nodes": nodes}).cluster
    pools = alike_nodes(cluster)
    assert bandwidth_gbps(cluster, pools[0], pools[2]) == 100
    assert bandwidth_gbps(cluster, pools[0], pools[1]) == 10
    chain = merged_chain(cluster, pools)
    assert sorted(chain) == [0, 1, 2]
    assert chain[1] != 1


def test_groups_that_cannot_talk_are_no_edge(write_experiment: Write) -> None:
    types = {name: fields | {"vendor": "one" if name == "a" else "two"} for name, fields in TYPES.items()}
    search = {"policy": "hexiscale", "allow_idle": True}
    cluster = experiment_of(write_experiment, {"accelerators": types}, search=search).cluster
    pools = alike_nodes(cluster)
    assert bandwidth_gbps(cluster, pools[0], pools[1]) == 0


def test_layers_follow_memory_not_speed(write_experiment: Write) -> None:
    """Twice the memory takes twice the layers, though the speeds would want it otherwise."""
    types = {
        "small": {"peak_tflops": 200.0, "memory_gb": 12.0},
        "large": {"peak_tflops": 100.0, "memory_gb": 24.0},
    }
    nodes = [{"accelerator": name, "count": 1, "devices": 4} for name in types]
    search = {"policy": "hexiscale", "fixed_dp": 4, "fixed_tp": 1}
    changes = {"accelerators": types, "nodes": nodes}
    plan = find_plan(experiment_of(write_experiment, changes, model={"num_layers": 12}, search=search))
    assert isinstance(plan, Plan)
    assert {stage.accelerator: stage.layers[0] for stage in plan.pipeline.stages} == {"large": 8, "small": 4}


def test_the_estimate_is_eq_1(write_experiment: Write) -> None:
    from poseidon.cost.build import ProblemBuilder

    task = task_of(experiment_of(write_experiment))
    costs = StageCosts(task)
    stages, layers, number = [(1, 2, 1), (1, 2, 1), (0, 2, 2), (2, 2, 2)], (1, 2, 3, 2), 8
    pipeline = costs.pipeline(stages, number)
    problem = ProblemBuilder(task.experiment, task.profile).build(pipeline.choice)
    choices = [StageChoice(kind, (count,)) for kind, count in zip(pipeline.kinds, layers, strict=True)]
    expected = static_time_ms(configuration_times(problem, choices), number)
    assert estimated_ms(costs, stages, layers, number) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("memory_gb", [3.0, 24.0])
def test_its_plan_is_a_plan_like_any_other(write_experiment: Write, memory_gb: float) -> None:
    types = {name: fields | {"memory_gb": memory_gb} for name, fields in TYPES.items()}
    plan = find_plan(experiment_of(write_experiment, {"accelerators": types}))
    assert isinstance(plan, Plan)
    assert {finding.verdict for finding in check_plan(plan)} == {Verdict.RIGHT}
    assert not plan.pipeline.idle


def test_all_devices_are_used_and_pipelines_are_alike(write_experiment: Write) -> None:
    answer = hexiscale_search(task_of(experiment_of(write_experiment)))
    (choice,) = answer.choices.values()
    assert sum(placement.num_stages * placement.devices_per_stage for placement in choice.layout.placements) == 12
    assert len({placement.dp for placement in choice.layout.placements}) == 1
