"""Stages that are given one by one: the costs of an ordinary outer choice where DP is the same, right where not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.costs import costs
from poseidon.cost.given_stages import GivenStage, given_pipeline
from poseidon.cost.memory import state_bytes
from poseidon.cost.placement import alike_nodes
from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.profile import load_profile
from poseidon.profile.profile import LayerKey, RowKey

Write = Callable[..., Path]


@pytest.fixture
def experiment(write_experiment: Write) -> Experiment:
    return load_experiment(write_experiment(training={"micro_batch_sizes": [1, 2, 4]}))


def built(experiment: Experiment, degrees: list[tuple[int, int]], num_micro_batches: int):
    """The choice and problem of a stage on each of the example's two nodes."""
    pools = alike_nodes(experiment.cluster)
    stages = [GivenStage(pool, dp, tp) for pool, (dp, tp) in zip(pools, degrees, strict=True)]
    pipeline = given_pipeline(experiment, pools, stages, num_micro_batches, "1f1b", "none")
    assert not isinstance(pipeline, str)
    builder = ProblemBuilder(experiment, load_profile(experiment))
    return pipeline, builder, builder.build(pipeline.choice)


@pytest.mark.parametrize(("dp", "tp"), [(2, 1), (1, 2)])
def test_with_one_dp_the_costs_are_those_of_the_outer_choice(experiment: Experiment, dp: int, tp: int) -> None:
    _, _, problem = built(experiment, [(dp, tp), (dp, tp)], 16 // dp)
    ordinary = next(p for choice, p in costs(experiment) if choice.name == f"dp{dp} tp{tp} mbs1 1f1b")
    for mine, theirs in zip(problem.kinds, ordinary.kinds, strict=True):
        assert (mine.layers, mine.first, mine.last, mine.max_layers) == (
            theirs.layers,
            theirs.first,
            theirs.last,
            theirs.max_layers,
        )
    assert problem.inter_node_ms == ordinary.inter_node_ms
    assert problem.num_micro_batches == ordinary.num_micro_batches


def test_each_stage_computes_its_own_share_of_a_micro_batch(experiment: Experiment) -> None:
    """8 micro-batches of 2 sequences: one for each of 2 replicas on the first stage, both for the only one after it."""
    pipeline, builder, problem = built(experiment, [(2, 1), (1, 2)], 8)
    choice = pipeline.choice
    sizes = [choice.micro_batch_of(placement) for placement in choice.layout.placements]
    assert sizes == [1, 2]
    for kind, size, tp in zip(problem.kinds, sizes, (1, 2), strict=True):
        accelerator = kind.name.split("/")[0]
        row = builder.profile.layers[LayerKey(RowKey(accelerator, tp, size), "dense", "none")]
        assert kind.layers[0].forward_ms == row.forward_ms
        assert kind.layers[0].backward_ms == row.backward_ms
    assert problem.kinds[0].layers[0].all_reduce_ms > 0
    assert problem.kinds[1].layers[0].all_reduce_ms == 0


def test_memory_is_that_of_the_stages_own_dp(experiment: Experiment) -> None:
    """The optimizer is sharded over the stage's own replicas."""
    pipeline, builder, _ = built(experiment, [(2, 1), (1, 2)], 8)
    choice = pipeline.choice
    for placement in choice.layout.placements:
        rows = builder.rows(choice, placement)
        expected = state_bytes(rows.layers[0].weight_bytes, placement.dp, experiment.training).total
        assert builder.device_memory(choice, placement).layers[0].state_bytes == expected
        assert rows.layers[0].activation_bytes == builder.device_memory(choice, placement).layers[0].activation_bytes


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_a_boundary_moves_the_whole_micro_batch(write_experiment: Write, sequence_parallel: bool) -> None:
    """From DP 2 x TP 1 to DP 1 x TP 2 and back, worked out by hand; 100 Gbps and 10 us between nodes.

    Two sequences are sent. With sequence parallelism each of two devices sends one sequence and each of two gets half
    of both: as many bytes. Without, each receiver needs both whole, so each sender sends its sequence twice.
    """
    training = {"micro_batch_sizes": [1, 2], "sequence_parallel": sequence_parallel}
    experiment = load_experiment(write_experiment(training=training))
    _, _, problem = built(experiment, [(2, 1), (1, 2)], 8)
    sequence_bytes = 1024 * 1024 * 2  # tokens x hidden size x 2 bytes
    sent_bytes = sequence_bytes if sequence_parallel else 2 * sequence_bytes
    expected_ms = 0.01 + sent_bytes / (100e9 / 8) * 1e3
    assert problem.inter_node_ms[0][1] == pytest.approx(expected_ms, rel=1e-12)
    assert problem.inter_node_ms[1][0] == pytest.approx(expected_ms, rel=1e-12)


def test_batches_that_do_not_divide_are_refused(experiment: Experiment) -> None:
    pools = alike_nodes(experiment.cluster)
    stages = [GivenStage(pools[0], 2, 1), GivenStage(pools[1], 1, 2)]
    assert given_pipeline(experiment, pools, stages, 16, "1f1b", "none") == (
        "16 micro-batches x DP 2 do not divide the global batch"
    )
