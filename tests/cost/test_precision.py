"""What precision, the optimizer's step and a stated reserve change in the costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from poseidon.cost import FinishedStage, OuterChoice, ProblemBuilder, finished_memories
from poseidon.cost.memory import StateBytes, state_bytes
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.training import Training
from poseidon.profile import Profile

Make = Callable[..., Experiment]
Choose = Callable[..., OuterChoice]


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({}, StateBytes(2e9, 4e9, 3e9)),
        ({"distributed_optimizer": False}, StateBytes(2e9, 4e9, 12e9)),
        ({"gradient_precision": "bf16"}, StateBytes(2e9, 2e9, 3e9)),
        ({"precision": "fp32", "distributed_optimizer": False}, StateBytes(2e9, 2e9, 4e9)),
    ],
)
def test_state_follows_the_precision(training: dict[str, Any], expected: StateBytes) -> None:
    """2 GB of weights over 4 data-parallel ranks: 1e9 parameters, or 5e8 of 4 bytes."""
    job = Training(global_batch_size=8, seq_length=8, **training)

    assert state_bytes(2e9, 4, job) == expected


@pytest.mark.parametrize(("training", "ratio"), [({"gradient_precision": "bf16"}, 0.5), ({"precision": "fp32"}, 0.5)])
def test_the_all_reduce_moves_gradients_of_their_precision(
    make_experiment: Make, profile: Profile, choice_of: Choose, training: dict[str, Any], ratio: float
) -> None:
    """fp32 weights of as many bytes are half as many parameters."""
    plain, other = (make_experiment(training=changes) for changes in ({}, training))
    times = [
        ProblemBuilder(item, profile).build(choice_of("dp2 tp1 mbs1 1f1b", item)).kinds[0].layers[0].all_reduce_ms
        for item in (plain, other)
    ]

    assert times[1] == pytest.approx(ratio * times[0])


def test_activations_of_fp32_take_twice_as_long_to_send(
    make_experiment: Make, profile: Profile, choice_of: Choose
) -> None:
    def sent_ms(item: Experiment) -> float:
        return ProblemBuilder(item, profile).build(choice_of("dp2 tp1 mbs1 1f1b", item)).inter_node_ms[0][1]

    assert sent_ms(make_experiment(training={"precision": "fp32"})) == pytest.approx(2 * sent_ms(make_experiment()))


@pytest.mark.parametrize(("distributed", "share"), [(True, 0.5), (False, 1.0)])
def test_the_optimizer_step_comes_after_the_all_reduce_and_is_sharded_with_its_state(
    make_experiment: Make, profile: Profile, choice_of: Choose, distributed: bool, share: float
) -> None:
    experiment = make_experiment(training={"distributed_optimizer": distributed})
    choice = choice_of("dp2 tp1 mbs1 1f1b", experiment)
    stepped = replace(profile, layers={key: replace(row, update_ms=8.0) for key, row in profile.layers.items()})

    before, after = (
        ProblemBuilder(experiment, item).build(choice).kinds[0].layers[0].all_reduce_ms for item in (profile, stepped)
    )

    assert after == pytest.approx(before + 8.0 * share)


def test_a_stated_reserve_replaces_the_fraction(make_experiment: Make, profile: Profile, choice_of: Choose) -> None:
    experiment = make_experiment(training={"memory_reserve_gb": 0.25})
    choice = choice_of("dp2 tp1 mbs1 1f1b", experiment)
    stages = [FinishedStage(kind, ((3 * i, 3 * i + 3),)) for i, kind in enumerate(choice.layout.placements)]

    memories = finished_memories(ProblemBuilder(experiment, profile), choice, stages)

    assert [memory.reserve_bytes for memory in memories] == [0.25e9, 0.25e9]


def test_the_limit_counts_the_transient_of_the_head(make_experiment: Make, profile: Profile, choice_of: Choose) -> None:
    """On `slow`, 4.6 GB free: at DP 2 the head takes 0.6 + 0.3 GB and a layer 1.2 + 0.5 GB; 2 layers leave 0.3 GB."""
    experiment = make_experiment()
    choice = choice_of("dp2 tp1 mbs1 1f1b", experiment)

    def most_on_the_last_stage(transient: float) -> int:
        head = {key: replace(row, recomputed_bytes=transient) for key, row in profile.head.items()}
        problem = ProblemBuilder(experiment, replace(profile, head=head)).build(choice)
        return problem.kinds[1].max_layers[1][0]

    assert [most_on_the_last_stage(size) for size in (0.0, 0.25e9, 0.35e9)] == [2, 2, 1]
