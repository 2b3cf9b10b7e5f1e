from __future__ import annotations

from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import MixtureOfExperts, Model
from poseidon.inputs.validation import validate


def model_of(data: dict[str, Any]) -> Model:
    return validate(Model, {"name": "m", **data}, "m.yaml")


def mistakes(data: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        model_of(data)
    return [f"{mistake.field}: {mistake.message}" for mistake in caught.value.mistakes]


def test_absent_fields_follow_from_others(model_data: dict[str, Any]) -> None:
    model = model_of(model_data)
    assert (model.num_kv_heads, model.head_dim, model.embedding_size) == (4, 16, 64)
    assert model_of({**model_data, "head_dim": None, "num_kv_heads": 2}).head_dim == 16


def test_the_parameters_of_a_small_model_count_up_by_hand(model_data: dict[str, Any]) -> None:
    model = model_of({**model_data, "num_kv_heads": 2})
    attention = 64 * 64 + 2 * 64 * 32 + 64 * 64  # queries, keys and values, output
    layer = attention + 3 * 64 * 256 + 2 * 64
    assert model.layer_parameters("dense") == layer
    assert model.embedding_parameters == 64_000
    assert model.head_parameters == 64 + 64_000
    assert model.num_parameters == model.num_active_parameters == 64_000 + 4 * layer + 64 + 64_000


def test_biases_and_layer_norms_count_up_by_hand(model_data: dict[str, Any]) -> None:
    plain = model_of({**model_data, "gated_mlp": False})
    assert plain.layer_parameters("dense") == 4 * 64 * 64 + 2 * 64 * 256 + 2 * 64

    def added(**fields: Any) -> int:
        return model_of({**model_data, "gated_mlp": False, **fields}).layer_parameters(
            "dense"
        ) - plain.layer_parameters("dense")

    assert added(norm="layernorm") == 2 * 64
    assert added(qkv_bias=True) == 3 * 64
    assert added(attention_output_bias=True) == 64
    assert added(mlp_bias=True) == 256 + 64
    assert added(qk_norm=True) == 2 * 16
    assert added(gated_mlp=True, mlp_bias=True) == 64 * 256 + 2 * 256 + 64


def test_a_tied_output_projection_counts_once(model_data: dict[str, Any]) -> None:
    model = model_of({**model_data, "tied_embeddings": True})
    assert model.head_parameters == 64
    assert model.output_projection_parameters == 64_000
    assert model.num_parameters == model_of(model_data).num_parameters - 64_000


def test_experts_count_all_or_those_that_a_token_visits(model_data: dict[str, Any]) -> None:
    moe = {"num_experts": 8, "experts_per_token": 2, "expert_ffn_hidden_size": 32, "shared_ffn_hidden_size": 48}
    model = model_of({**model_data, "moe": moe})
    expert, shared, router = 3 * 64 * 32, 3 * 64 * 48, 64 * 8
    rest = model.layer_parameters("dense") - 3 * 64 * 256
    assert model.layer_parameters("moe") == rest + 8 * expert + shared + router
    assert model.active_layer_parameters("moe") == rest + 2 * expert + shared + router
    with_bias = model_of({**model_data, "moe": {**moe, "router_bias": True}})
    assert with_bias.layer_parameters("moe") == model.layer_parameters("moe") + 8


@pytest.mark.parametrize(
    ("fields", "types"),
    [
        ({}, "mmmmmm"),
        ({"first_dense_layers": 2}, "ddmmmm"),
        ({"first_dense_layers": 1, "moe_layer_frequency": 2}, "dmdmdm"),
        ({"moe_layer_frequency": 4}, "mdddmd"),
        ({"dense_layers": [0, 3]}, "dmmdmm"),
        ({"first_dense_layers": 6}, "dddddd"),
    ],
)
def test_layer_types_stand_in_order(model_data: dict[str, Any], fields: dict[str, Any], types: str) -> None:
    moe = {"num_experts": 8, "experts_per_token": 2, "expert_ffn_hidden_size": 32, **fields}
    model = model_of({**model_data, "num_layers": 6, "moe": moe})
    assert "".join(layer_type[0] for layer_type in model.layer_types) == types
    assert [layer_type[0] for layer_type in model.distinct_layer_types] == list(dict.fromkeys(types))


def test_a_model_without_experts_is_dense(model_data: dict[str, Any]) -> None:
    assert model_of(model_data).layer_types == ("dense",) * 4


def test_records_and_mappings_give_the_same_model(model_data: dict[str, Any]) -> None:
    moe = MixtureOfExperts(num_experts=8, experts_per_token=2, expert_ffn_hidden_size=32)
    assert Model(name="m", **model_data, moe=moe) == model_of({**model_data, "moe": moe.model_dump()})


def test_shapes_that_cannot_be_are_refused_together(model_data: dict[str, Any]) -> None:
    moe = {
        "num_experts": 2,
        "experts_per_token": 3,
        "expert_ffn_hidden_size": 32,
        "first_dense_layers": 5,
        "dense_layers": [4],
    }
    assert mistakes({**model_data, "num_kv_heads": 3, "hidden_size": 66, "moe": moe}) == [
        "num_kv_heads: 3 does not divide num_attention_heads, 4",
        "head_dim: is missing, and hidden_size 66 is not a multiple of num_attention_heads 4",
        "moe.experts_per_token: 3 is more than num_experts, 2",
        "moe.first_dense_layers: 5 is more than num_layers, 4",
        "moe.dense_layers[0]: there is no layer 4: the model has layers 0 to 3",
    ]


def test_a_wrong_size_is_reported_once_not_for_all_that_follows_from_it(model_data: dict[str, Any]) -> None:
    assert mistakes({**model_data, "hidden_size": "64", "num_attention_heads": 0}) == [
        "hidden_size: expected a whole number, got the text '64'",
        "num_attention_heads: 0 is too small: at least 1 is accepted",
    ]
    del model_data["num_attention_heads"]
    assert mistakes(model_data) == ["num_attention_heads: is missing"]


def test_numbers_beyond_all_bounds_are_refused(model_data: dict[str, Any]) -> None:
    huge = dict.fromkeys(model_data, 10**400)
    assert len(mistakes(huge)) == len(model_data)
