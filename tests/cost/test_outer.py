from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poseidon.cost import costs, no_choice_error, outer_choices
from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment, load_experiment

EXPERIMENTS = Path(__file__).parents[2] / "configs" / "experiments"
Make = Callable[..., Experiment]


def names(experiment: Experiment) -> list[str]:
    return [choice.name for choice in outer_choices(experiment).choices]


def refusal_line(experiment: Experiment) -> str:
    found = outer_choices(experiment)
    assert found.choices == ()
    line = str(no_choice_error(experiment, found.refusals))
    assert "\n" not in line
    return line


def test_the_choices_of_the_example_are_those_worked_out_by_hand(experiment: Experiment) -> None:
    assert names(experiment) == ["dp1 tp1 mbs1 1f1b", "dp2 tp1 mbs1 1f1b", "dp1 tp2 mbs1 1f1b"]


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        ("setting1", 30),
        ("setting2", 42),
        ("setting5", 30),
        ("setting6-96", 39),
        ("setting6-192", 45),
        ("setting6-288", 33),
    ],
)
def test_the_paper_s_settings_have_as_many_choices_as_the_prototype_found(setting: str, count: int) -> None:
    """design/exact-search.md, table of the prototype; TP x micro-batch x DP, 1F1B."""
    assert len(names(load_experiment(EXPERIMENTS / f"{setting}.yaml"))) == count


def test_heads_that_tp_does_not_divide_drop_out() -> None:
    """LLaMA 30B has 52 heads: TP 8 is impossible, TP 1, 2, 4 with DP x micro-batch remain."""
    found = outer_choices(load_experiment(EXPERIMENTS / "setting3.yaml"))

    assert {choice.tp for choice in found.choices} == {1, 2, 4}
    assert len(found.choices) == 36
    assert any(refusal.reason == "TP 8 does not divide the model's 52 attention heads" for refusal in found.refusals)


def test_the_number_of_micro_batches_follows_from_the_batch(make_experiment: Make) -> None:
    experiment = make_experiment(training={"global_batch_size": 24, "micro_batch_sizes": [1, 2, 3, 5]})

    counts = {choice.name: choice.num_micro_batches for choice in outer_choices(experiment).choices}

    assert counts["dp2 tp1 mbs3 1f1b"] == 4
    assert not any("mbs5" in name for name in counts)


def test_a_pipeline_has_no_more_stages_than_layers(make_experiment: Make) -> None:
    experiment = make_experiment(model={"num_layers": 3})

    assert names(experiment) == ["dp2 tp1 mbs1 1f1b", "dp1 tp2 mbs1 1f1b"]


def test_fixed_degrees_are_honoured(make_experiment: Make) -> None:
    assert names(make_experiment(search={"fixed_dp": 2})) == ["dp2 tp1 mbs1 1f1b"]
    assert names(make_experiment(search={"fixed_tp": 2})) == ["dp1 tp2 mbs1 1f1b"]
    assert names(make_experiment(search={"fixed_pp": 4})) == ["dp1 tp1 mbs1 1f1b"]


def test_every_schedule_and_number_of_chunks_is_a_choice(make_experiment: Make) -> None:
    training = {"schedules": ["1f1b", "gpipe", "interleaved_1f1b"], "num_chunks": [2, 3]}

    found = names(make_experiment(training=training, search={"fixed_tp": 2}))

    assert found == [
        "dp1 tp2 mbs1 1f1b",
        "dp1 tp2 mbs1 gpipe",
        "dp1 tp2 mbs1 interleaved_1f1b x2",
        "dp1 tp2 mbs1 interleaved_1f1b x3",
    ]


def test_interleaving_needs_a_micro_batch_for_each_stage_and_enough_layers(make_experiment: Make) -> None:
    training = {"schedules": ["interleaved_1f1b"], "num_chunks": [2], "global_batch_size": 2}

    found = outer_choices(make_experiment(training=training))

    assert [choice.name for choice in found.choices] == ["dp1 tp2 mbs1 interleaved_1f1b x2"]
    reasons = {refusal.reason for refusal in found.refusals}
    assert "4 stages of 2 chunks need 8 layers; the model has 6" in reasons
    assert any("must be at least 2, not 1" in reason for reason in reasons)


def test_a_tp_degree_may_be_chosen_for_each_type(make_experiment: Make) -> None:
    found = names(make_experiment(search={"tp": "per-type"}))

    assert set(found) == {
        "dp1 tp1 mbs1 1f1b",
        "dp2 tp1 mbs1 1f1b",
        "dp1 tp2 mbs1 1f1b",
        "dp1 tp1/2 mbs1 1f1b",
        "dp1 tp2/1 mbs1 1f1b",
    }


def test_a_target_that_needs_equal_stages_overrides_free_tp(make_experiment: Make) -> None:
    for scope in ("per-type", "per-stage"):
        search = {"tp": scope, "target": "megatron"}
        assert names(make_experiment(search=search)) == names(make_experiment())


def test_a_batch_that_no_dp_divides_is_one_clear_line(make_experiment: Make) -> None:
    experiment = make_experiment(model={"num_layers": 2}, training={"global_batch_size": 7}, search={"fixed_tp": 1})
    line = refusal_line(experiment)

    assert "training.global_batch_size: 7 is not divisible by any DP x micro-batch" in line
    assert "DP can be 2 here, and micro_batch_sizes are 1" in line


def test_too_few_layers_are_one_clear_line(make_experiment: Make) -> None:
    line = refusal_line(make_experiment(model={"num_layers": 1}))

    assert line == (
        "example: model.num_layers: the model has 1 layers, and every stage needs one; stages that use every device of "
        "the cluster number 2, 4; or let devices stay idle with search: {allow_idle: true}"
    )


def test_a_number_of_stages_that_does_not_exist_is_one_clear_line(make_experiment: Make) -> None:
    line = refusal_line(make_experiment(search={"fixed_pp": 3}))

    assert "search.fixed_pp: 3 stages do not use every device of the cluster; numbers of stages that do: 2, 4" in line


def test_a_fixed_degree_that_the_nodes_refuse_is_one_clear_line(make_experiment: Make) -> None:
    nodes = [{"accelerator": "fast", "count": 1, "devices": 3}, {"accelerator": "slow", "count": 1, "devices": 2}]
    line = refusal_line(make_experiment(cluster={"nodes": nodes}, search={"fixed_tp": 2}))

    assert line == "example: cluster.nodes: no plan is possible: TP 2 does not divide the 3 devices of a node of fast"


def test_costs_raises_that_line(make_experiment: Make) -> None:
    with pytest.raises(InputError, match="every stage needs one"):
        costs(make_experiment(model={"num_layers": 1}))


def divides_either_way(size: int, devices: int) -> bool:
    return devices % size == 0 or size % devices == 0


@settings(max_examples=60)
@given(
    nodes=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 4, 6])), min_size=1, max_size=2),
    heads=st.sampled_from([4, 6, 12]),
    layers=st.integers(1, 12),
    batch=st.integers(1, 24),
)
def test_exactly_the_feasible_choices_are_found(
    nodes: list[tuple[int, int]], heads: int, layers: int, batch: int
) -> None:
    """Against the contract's conditions, tried one by one for every DP, TP and micro-batch size."""
    types: dict[str, dict[str, Any]] = {f"T{i}": {"peak_tflops": 100.0, "memory_gb": 16.0} for i in range(len(nodes))}
    link = {"bandwidth_gbps": 100.0}
    experiment = Experiment.model_validate(
        {
            "name": "random",
            "model": {
                "name": "m",
                "num_layers": layers,
                "hidden_size": 48,
                "ffn_hidden_size": 64,
                "num_attention_heads": heads,
                "vocab_size": 100,
            },
            "cluster": {
                "name": "c",
                "accelerators": types,
                "nodes": [{"accelerator": f"T{i}", "count": n, "devices": d} for i, (n, d) in enumerate(nodes)],
                "links": {"intra_node": link, "inter_node": link},
            },
            "training": {"global_batch_size": batch, "seq_length": 8, "micro_batch_sizes": [1]},
        }
    )
    total = sum(count * devices for count, devices in nodes)
    expected = {
        (dp, tp)
        for dp in range(1, total + 1)
        for tp in range(1, 7)
        if heads % tp == 0
        and all(devices % tp == 0 and divides_either_way(dp * tp, devices) for _, devices in nodes)
        and all(count * devices % (dp * tp) == 0 for count, devices in nodes)
        and sum(count * devices for count, devices in nodes) // (dp * tp) <= layers
        and batch % dp == 0
    }

    assert {(choice.dp, choice.tp) for choice in outer_choices(experiment).choices} == expected
