"""What Figure 2 rests on: readings of Eq. 1, of the links, and plans that are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.paper.given_plan import timed_plan
from poseidon.paper.shared_links import READINGS, WORDS, with_links
from poseidon.paper.static_readings import static_readings
from poseidon.paper.studies.paper_plans import PLANS
from poseidon.plan import Plan, Verdict, check_plan
from poseidon.plan.timing import pipeline_times
from poseidon.simulate import stage_times
from poseidon.simulate.static_formula import static_time_ms

SETTING_2 = Path(__file__).parents[2] / "configs" / "experiments" / "setting2.yaml"


@pytest.fixture(scope="module")
def setting2() -> Experiment:
    return load_experiment(SETTING_2)


def test_readings_of_eq_1_by_hand() -> None:
    times = stage_times(
        [1.0, 2.0, 1.0],
        [2.0, 4.0, 3.0],
        send_forward_ms=[0.5, 0.25, 0.0],
        send_backward_ms=[0.0, 1.0, 0.75],
        all_reduce_ms=[1.0, 3.0, 2.0],
    )
    readings = static_readings(times, 5)
    assert readings.no_transfers_ms == 3 + 6 + 4 + 4 * 6 + 3
    assert readings.once_ms == (3 + 1.5) + (6 + 1.0) + 4 + 4 * 7 + 3
    assert readings.both_sides_ms == (3 + 1.5) + (6 + 1.5 + 1.0) + (4 + 1.0) + 4 * 8.5 + 3
    assert readings.both_sides_all_reduces_ms == readings.both_sides_ms + 3


def test_links_of_a_node_give_each_device_its_part(setting2: Experiment) -> None:
    assert set(WORDS) == set(READINGS)
    assert with_links(setting2, "device") == setting2
    by_stage, by_node = (with_links(setting2, reading).cluster.links for reading in ("stage", "node"))
    own = setting2.cluster.links
    for name in ("inter_node", "cross_cluster"):
        bandwidth = getattr(own, name).bandwidth_gbps
        assert getattr(by_stage, name).per_device_gbps(2) == bandwidth / 2
        assert getattr(by_node, name).per_device_gbps(2) == bandwidth / 8
    assert by_stage.intra_node == by_node.intra_node == own.intra_node


@pytest.mark.parametrize(("system", "pp", "layers"), [("Poseidon", 16, 40), ("Metis", 14, 40), ("HexiScale", 10, 40)])
def test_the_printed_plans_are_timed_and_right(setting2: Experiment, system: str, pp: int, layers: int) -> None:
    stages = [stage for count, stage in PLANS[system] for _ in range(count)]
    plan = timed_plan(setting2, stages, 1)
    assert isinstance(plan, Plan)
    assert {finding.verdict for finding in check_plan(plan)} == {Verdict.RIGHT}
    pipeline = plan.pipeline
    assert (pipeline.pp, pipeline.num_devices) == (pp, 32)
    assert [(s.dp, s.tp, s.accelerator, s.layers) for s in pipeline.stages] == [
        (s.dp, s.tp, s.accelerator, (s.layers,)) for s in stages
    ]
    assert sum(stage.layers[0] for stage in pipeline.stages) == layers
    assert pipeline.num_micro_batches * pipeline.dp == setting2.training.global_batch_size
    times = pipeline_times(pipeline)
    assert static_readings(times, pipeline.num_micro_batches).once_ms == pytest.approx(
        static_time_ms(times, pipeline.num_micro_batches), rel=1e-12
    )


def test_eq_1_over_estimates_the_papers_plans_by_a_quarter_where_nodes_share_links(setting2: Experiment) -> None:
    """The cause of Figure 2 (docs/results.md): deep pipelines with slow hops, not the formula's use on our plans."""
    stages = [stage for count, stage in PLANS["Poseidon"] for _ in range(count)]
    over = {}
    for links in ("device", "node"):
        plan = timed_plan(with_links(setting2, links), stages, 1)
        assert isinstance(plan, Plan)
        readings = static_readings(pipeline_times(plan.pipeline), plan.pipeline.num_micro_batches)
        over[links] = readings.once_ms / plan.pipeline.iteration_time_ms
    assert over["device"] < 1.05
    assert 1.23 < over["node"] < 1.35


def test_stages_that_do_not_suit_the_experiment_are_refused(setting2: Experiment) -> None:
    stages = [stage for count, stage in PLANS["Poseidon"] for _ in range(count)]
    cases = {
        "39 layers are given, the model has 40": [replace(stages[0], layers=1), *stages[1:]],
        "devices 16 A2-2, 18 A2-3 are given, the cluster has 16 A2-2, 16 A2-3": [replace(stages[0], dp=4), *stages[1:]],
    }
    for reason, changed in cases.items():
        assert timed_plan(setting2, changed, 1) == reason
    assert timed_plan(setting2, stages, 3) == "DP 2 x micro-batches of 3 do not divide the global batch"
