from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.cost import OuterChoice, ProblemBuilder, build_problem, costs, outer_choices
from poseidon.cost.problem import LayerCost
from poseidon.cost.problem_file import problem_from_json, problem_to_json
from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment, build_experiment, load_experiment
from poseidon.profile import Profile, analytic_profile, load_profile

CONFIGS = Path(__file__).parents[2] / "configs"
EXPERIMENTS = CONFIGS / "experiments"
Make = Callable[..., Experiment]
Choose = Callable[..., OuterChoice]


def test_the_problem_of_the_example_is_the_one_worked_out_by_hand(
    experiment: Experiment, profile: Profile, choice_of: Choose
) -> None:
    """DP 2: one stage a node. Gradients: 4 bytes x 1e8 parameters, ring of 2 at 1e8 bytes a ms: 4 ms a layer."""
    problem = build_problem(experiment, profile, choice_of("dp2 tp1 mbs1 1f1b"))

    assert (problem.num_stages, problem.num_micro_batches, problem.num_layers) == (2, 4, 6)
    assert (problem.schedule, problem.num_chunks, problem.assignment) == ("1f1b", 1, "node")
    fast, slow = problem.kinds
    assert (fast.name, fast.stages, fast.stages_per_node) == ("fast/tp1", 1, 1)
    assert fast.layers == (LayerCost(1.0, 2.0, pytest.approx(4.0)),)
    assert slow.layers == (LayerCost(2.0, 4.0, pytest.approx(4.0)),)
    assert fast.first == LayerCost(0.1, 0.2, pytest.approx(2.0))
    assert fast.last == LayerCost(0.5, 1.0, pytest.approx(2.0))
    # 1000 tokens x 1000 x 2 bytes at 1e7 bytes a ms
    assert problem.inter_node_ms == ((pytest.approx(0.2),) * 2,) * 2
    assert problem.intra_node_ms[0][0] == pytest.approx(0.02)


def test_limits_of_the_example_are_those_worked_out_by_hand(
    experiment: Experiment, profile: Profile, choice_of: Choose
) -> None:
    """DP 1, 4 stages: a layer takes 1.8 + in-flight x 0.5 GB; embedding and head 0.9 GB, the head's logits 0.3 GB."""
    fast, slow = build_problem(experiment, profile, choice_of("dp1 tp1 mbs1 1f1b")).kinds

    assert fast.max_layers == ((2,), (2,), (3,), (3,))  # 8.3 / 3.8, 9.2 / 3.3, 9.2 / 2.8, 8.0 / 2.3
    assert slow.max_layers == ((0,), (1,), (1,), (1,))  # 3.7 / 3.8, 4.6 / 3.3, 4.6 / 2.8, 3.4 / 2.3


def test_a_distributed_optimizer_makes_room(make_experiment: Make, profile: Profile, choice_of: Choose) -> None:
    """DP 2: 1.2 instead of 1.8 GB of state a layer; 8.6 / (1.2 + 2 x 0.5) and 8.3 / (1.8 + 2 x 0.5)."""
    sharded, whole = make_experiment(), make_experiment(training={"distributed_optimizer": False})
    limits = [
        build_problem(experiment, profile, choice_of("dp2 tp1 mbs1 1f1b", experiment)).kinds[0].max_layers[0][0]
        for experiment in (sharded, whole)
    ]

    assert limits == [3, 2]


def test_a_memory_fraction_and_a_reserve_take_room(make_experiment: Make, profile: Profile, choice_of: Choose) -> None:
    """Last stage, 2.3 GB a layer and 1.2 GB of head: 10 GB hold 3 layers, 10 x (0.6 - 0.08) = 5.2 GB hold 1."""
    experiment = make_experiment(search={"max_memory_fraction": 0.6})

    kind = build_problem(experiment, profile, choice_of("dp1 tp1 mbs1 1f1b", experiment)).kinds[0]

    assert kind.max_layers[3] == (1,)


def test_usable_memory_is_what_counts(make_experiment: Make, profile: Profile, choice_of: Choose) -> None:
    accelerators = {
        "fast": {"peak_tflops": 200.0, "memory_gb": 80.0, "usable_memory_gb": 10.0},
        "slow": {"peak_tflops": 100.0, "memory_gb": 5.0},
    }
    experiment = make_experiment(cluster={"accelerators": accelerators})

    kind = build_problem(experiment, profile, choice_of("dp1 tp1 mbs1 1f1b", experiment)).kinds[0]

    assert kind.max_layers == ((2,), (2,), (3,), (3,))


def test_a_pipeline_of_one_stage_holds_a_tied_matrix_once(make_experiment: Make, profile: Profile) -> None:
    nodes = [{"accelerator": "fast", "count": 1, "devices": 2}]
    for tied, expected_ms in ((True, 0.0), (False, 2.0)):
        model = {"tied_embeddings": tied, "vocab_size": 50_000}
        experiment = make_experiment(model=model, cluster={"nodes": nodes}, search={"fixed_pp": 1, "fixed_dp": 2})
        ((choice, problem),) = costs(experiment, profile)
        assert choice.num_stages == 1
        assert problem.kinds[0].last.all_reduce_ms == pytest.approx(expected_ms)


def test_full_recomputation_keeps_less_and_pays_for_one_layer_at_a_time(
    make_experiment: Make, profile: Profile, choice_of: Choose
) -> None:
    """First of 4 stages: (8.3 - 0.4) / (1.8 + 4 x 0.1)."""
    experiment = make_experiment(training={"recompute": "full"})

    problem = build_problem(experiment, profile, choice_of("dp1 tp1 mbs1 1f1b recompute-full", experiment))

    assert problem.kinds[0].max_layers[0] == (3,)


def test_gpipe_holds_every_micro_batch(make_experiment: Make, profile: Profile) -> None:
    """8 in flight on every stage: 5.8 GB a layer."""
    experiment = make_experiment(training={"schedules": ["gpipe"]}, search={"fixed_pp": 4})
    ((_, problem),) = costs(experiment, profile)

    assert problem.kinds[0].max_layers == ((1,), (1,), (1,), (1,))


def test_a_missing_row_is_an_error_that_lists_it(experiment: Experiment, profile: Profile, choice_of: Choose) -> None:
    layers = {key: row for key, row in profile.layers.items() if (key.at.accelerator, key.at.tp) != ("slow", 2)}
    head = {key: row for key, row in profile.head.items() if key.tp != 1}
    incomplete = Profile(profile.model, 1000, "bf16", "", layers, profile.embedding, head)

    with pytest.raises(InputError) as error:
        list(costs(experiment, incomplete))

    text = str(error.value)
    assert len(error.value.mistakes) == 1
    assert "layers (accelerator slow, tp 2, micro_batch_size 1, layer_type dense, recompute none)" in text
    assert "head (accelerator fast, tp 1, micro_batch_size 1)" in text


def test_costs_come_in_a_fixed_order_and_build_once(experiment: Experiment, profile: Profile) -> None:
    first, second = list(costs(experiment, profile)), list(costs(experiment, profile))
    alone = [build_problem(experiment, profile, choice) for choice in outer_choices(experiment).choices]

    assert first == second
    assert [problem for _, problem in first] == alone


@pytest.mark.parametrize("setting", ["setting1", "setting4", "setting6-288", "quickstart"])
def test_every_problem_of_a_setting_reads_back_from_its_line(setting: str) -> None:
    for _, problem in costs(load_experiment(EXPERIMENTS / f"{setting}.yaml")):
        assert problem_from_json(problem_to_json(problem), "line") == problem


def test_a_layer_of_setting_2_takes_about_half_of_the_peak() -> None:
    """LLaMA-2 13B on A2-2 at TP 2: published runs reach 0.4 to 0.6 of the peak in the layers."""
    experiment = load_experiment(EXPERIMENTS / "setting2.yaml")
    problem = next(problem for choice, problem in costs(experiment) if choice.name == "dp4 tp2 mbs1 1f1b")
    layer = problem.kinds[0].layers[0]
    tokens, parameters = 4096, experiment.model.layer_parameters("dense")
    flops = 6 * tokens * parameters + 6 * tokens * 4096 * 5120  # weights; causal attention, forward and backward

    share = flops / 2 / 376e9 / (layer.forward_ms + layer.backward_ms)

    assert 0.45 < share < 0.6


def test_a_builder_may_serve_several_experiments_choices(experiment: Experiment) -> None:
    loaded = load_profile(experiment)
    builder = ProblemBuilder(experiment, loaded)

    for choice in (*outer_choices(experiment).choices, *outer_choices(experiment).choices):
        assert builder.build(choice) == build_problem(experiment, analytic_profile(experiment), choice)


def test_a_mixed_stack_has_a_cost_for_each_type_and_a_limit_for_each_first_layer() -> None:
    """DeepSeek-V3: three dense layers, then MoE layers, which are far larger."""
    experiment = build_experiment(
        CONFIGS / "models" / "deepseek-v3.yaml",
        CONFIGS / "clusters" / "npu-288.yaml",
        512,
        4096,
        training={"recompute": "full"},
        search={"fixed_dp": 2, "fixed_tp": 8},
    )
    _, problem = next(iter(costs(experiment)))

    assert problem.layer_type_names == ("dense", "moe")
    assert problem.layer_types == (0, 0, 0) + (1,) * 58
    for kind in problem.kinds:
        dense, moe = kind.layers
        assert dense.all_reduce_ms < moe.all_reduce_ms
        limits = kind.max_layers[0]
        assert len(limits) == 61
        assert limits[0] > limits[3] >= limits[60]
    assert problem_from_json(problem_to_json(problem), "line") == problem
