from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.inputs.model import Model
from poseidon.profile.layer import layer_forward_flops, layer_operations
from poseidon.profile.micro_batch import MicroBatch

CONFIGS = Path(__file__).parents[2] / "configs" / "models"


def test_flops_of_the_tiny_layer_are_those_worked_out_by_hand(tiny_model: Model) -> None:
    flops = {op.name: op.forward_flops for op in layer_operations(tiny_model, "dense", MicroBatch(1, 4))}

    assert flops["qkv"] == 2 * 4 * 8 * 24
    assert flops["attention core"] == 2 * (2 * 4 * 4 * 8) / 2  # scores and context, half of them masked
    assert flops["projection"] == 2 * 4 * 8 * 8
    assert flops["mlp up"] == 2 * 4 * 8 * 32
    assert flops["mlp down"] == 2 * 4 * 16 * 8
    assert sum(flops.values()) == 5376


def test_unfused_attention_computes_the_masked_half_too(tiny_model: Model) -> None:
    fused = layer_forward_flops(tiny_model, "dense", MicroBatch(1, 4))
    unfused = layer_forward_flops(tiny_model, "dense", MicroBatch(1, 4, flash_attention=False))

    assert unfused - fused == 256


def test_a_gpt_layer_matches_the_published_flops(gpt_22b: Model) -> None:
    """Narayanan et al. 2021, appendix: 24 B s h^2 (1 + s / 6h) for one forward pass."""
    batch, seq_length, hidden = 4, 2048, 6144
    expected = 24 * batch * seq_length * hidden**2 * (1 + seq_length / (6 * hidden))

    flops = layer_forward_flops(gpt_22b, "dense", MicroBatch(batch, seq_length, flash_attention=False))

    assert flops == pytest.approx(expected, rel=1e-12)


def test_forward_flops_of_a_dense_model_are_two_a_parameter_and_token(tiny_model: Model) -> None:
    wide = tiny_model.model_copy(update={"hidden_size": 4096, "ffn_hidden_size": 11008, "head_dim": 2048})
    tokens = 64  # short, so that attention over the sequence hardly counts

    flops = layer_forward_flops(wide, "dense", MicroBatch(1, tokens))

    assert flops == pytest.approx(2 * tokens * wide.layer_parameters("dense"), rel=2e-3)


def test_backward_flops_are_twice_the_forward_ones_but_for_fused_attention(tiny_model: Model) -> None:
    for operation in layer_operations(tiny_model, "dense", MicroBatch(1, 4)):
        factor = 2.5 if operation.fused_attention else 2.0
        assert operation.backward_flops == factor * operation.forward_flops


@given(tp=st.sampled_from([1, 2, 4, 8]), size=st.integers(1, 8), sequence_parallel=st.booleans())
def test_tp_ranks_share_the_flops_evenly(tp: int, size: int, sequence_parallel: bool) -> None:
    model = Model(
        name="m",
        num_layers=2,
        hidden_size=512,
        ffn_hidden_size=2048,
        num_attention_heads=8,
        num_kv_heads=8,
        vocab_size=1000,
    )
    whole = layer_forward_flops(model, "dense", MicroBatch(size, 128))
    part = layer_forward_flops(model, "dense", MicroBatch(size, 128, tp, sequence_parallel))

    assert part * tp == pytest.approx(whole, rel=1e-12)


def test_key_value_heads_are_replicated_where_tp_exceeds_them(tiny_model: Model) -> None:
    model = tiny_model.model_copy(update={"num_attention_heads": 8, "num_kv_heads": 2, "head_dim": 4})

    flops = {op.name: op.forward_flops for op in layer_operations(model, "dense", MicroBatch(1, 4, tp=8))}

    assert flops["qkv"] == 2 * 4 * 8 * (4 + 2 * 4)  # one query head, one whole key head, one whole value head


def test_a_moe_layer_computes_the_active_experts_and_the_router(tiny_model: Model) -> None:
    moe = Model.model_validate(
        tiny_model.model_dump()
        | {"moe": {"num_experts": 4, "experts_per_token": 2, "expert_ffn_hidden_size": 6, "shared_ffn_hidden_size": 10}}
    )
    flops = {op.name: op.forward_flops for op in layer_operations(moe, "moe", MicroBatch(1, 4))}

    assert flops["router"] == 2 * 4 * 8 * 4
    assert flops["expert up"] + flops["expert down"] == 2 * (2 * 4 * 8 * 18)
    assert flops["shared up"] + flops["shared down"] == 2 * 4 * 8 * 30


def test_latent_attention_matches_its_parameters() -> None:
    """For short sequences the FLOPs are two a token for each parameter of a matrix."""
    mla = {
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    }
    model = Model.model_validate(
        {
            "name": "deepseek",
            "num_layers": 2,
            "hidden_size": 7168,
            "ffn_hidden_size": 18432,
            "num_attention_heads": 128,
            "vocab_size": 1000,
            "mla": mla,
        }
    )
    flops = layer_forward_flops(model, "dense", MicroBatch(1, 16))

    assert flops == pytest.approx(2 * 16 * model.layer_parameters("dense"), rel=5e-3)
