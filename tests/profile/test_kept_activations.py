from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.inputs.model import Model
from poseidon.inputs.training import Recompute
from poseidon.profile.layer import kept_activation_bytes, layer_operations, recomputed_bytes
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.vocabulary import embedding_operations, head_operations

FORMULAS = Path(__file__).parent / "data" / "activation_memory_formulas.csv"
CASES: dict[str, tuple[int, bool, Recompute]] = {
    "no parallelism": (1, False, "none"),
    "TP (baseline)": (8, False, "none"),
    "TP+SP": (8, True, "none"),
    "TP+selective": (8, False, "selective"),
    "TP+SP+selective": (8, True, "selective"),
    "full recompute": (8, False, "full"),
}


def kept(model: Model, batch: MicroBatch, recompute: Recompute) -> float:
    return kept_activation_bytes(layer_operations(model, "dense", batch), model, batch, recompute)


@pytest.mark.parametrize("name", CASES)
def test_a_gpt_layer_keeps_what_korthikanti_et_al_derive(name: str, gpt_22b: Model) -> None:
    with FORMULAS.open(encoding="utf-8") as lines:
        formulas = {row["name"]: row["per_layer_bytes"] for row in csv.DictReader(lines)}
    tp, sequence_parallel, recompute = CASES[name]
    names = {"s": 2048, "b": 4, "h": 6144, "a": 64, "t": tp}
    expected = eval(formulas[name], {"__builtins__": {}}, names)  # a formula of our own data file

    batch = MicroBatch(4, 2048, tp, sequence_parallel, flash_attention=False)

    assert kept(gpt_22b, batch, recompute) == pytest.approx(expected, rel=1e-12)


def test_the_tiny_layer_keeps_what_was_worked_out_by_hand(tiny_model: Model) -> None:
    batch = MicroBatch(1, 4)
    stream = 4 * 8 * 2
    norms_and_their_outputs = 4 * stream
    attention = 3 * stream + 4 * 2 * 4 + stream  # queries, keys, values; log-sum-exp; output
    mlp = 3 * (4 * 16 * 2)  # gate, up, activated

    assert kept(tiny_model, batch, "none") == norms_and_their_outputs + attention + mlp == 928
    assert kept(tiny_model, batch, "selective") == 928 - 2 * stream - 128  # norm outputs and activated values go
    assert kept(tiny_model, batch, "full") == stream


def test_what_recomputation_drops_comes_back_for_one_layer(tiny_model: Model) -> None:
    batch = MicroBatch(1, 4)
    operations = layer_operations(tiny_model, "dense", batch)

    assert recomputed_bytes(operations, tiny_model, batch, "none") == 0
    assert recomputed_bytes(operations, tiny_model, batch, "selective") == 256
    assert recomputed_bytes(operations, tiny_model, batch, "full") == 928 - 64


def test_flash_attention_keeps_no_score_matrix(gpt_22b: Model) -> None:
    per_token = [kept(gpt_22b, MicroBatch(1, length), "none") / length for length in (1024, 4096)]

    assert per_token[0] == per_token[1]


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    size=st.integers(1, 4),
    flash=st.booleans(),
    gated=st.booleans(),
    kv_heads=st.sampled_from([1, 2, 8]),
)
def test_more_recomputation_and_more_tp_never_keep_more(
    tp: int, size: int, flash: bool, gated: bool, kv_heads: int
) -> None:
    model = Model(
        name="m",
        num_layers=2,
        hidden_size=512,
        ffn_hidden_size=1024,
        num_attention_heads=8,
        num_kv_heads=kv_heads,
        vocab_size=1000,
        gated_mlp=gated,
    )
    batch = MicroBatch(size, 256, tp, flash_attention=flash)
    none, selective, full = (kept(model, batch, mode) for mode in ("none", "selective", "full"))

    assert full < selective < none
    assert none <= kept(model, MicroBatch(size, 256, 1, flash_attention=flash), "none")
    assert none <= kept(model, MicroBatch(size, 256, tp, sequence_parallel=False, flash_attention=flash), "none")


def test_routed_tokens_are_kept_whole_on_every_tp_rank(tiny_model: Model) -> None:
    moe = Model.model_validate(
        tiny_model.model_dump() | {"moe": {"num_experts": 4, "experts_per_token": 2, "expert_ffn_hidden_size": 6}}
    )
    by_tp = {}
    for tp in (1, 2):
        operations = layer_operations(moe, "moe", MicroBatch(1, 4, tp))
        by_tp[tp] = {operation.name: operation.kept.total for operation in operations}

    assert by_tp[1]["expert up"] == by_tp[2]["expert up"] == 2 * 4 * 8 * 2
    assert by_tp[2]["expert down"] == by_tp[1]["expert down"] / 2


def test_the_head_keeps_fp32_logits_and_the_embedding_a_dropout_mask(gpt_22b: Model) -> None:
    """Korthikanti et al. 2022, section 4.3: 4 s b v / t, 2 s b h / t twice, and s b h / t."""
    batch = MicroBatch(4, 2048, 8, flash_attention=False)
    tokens = 4 * 2048

    head = sum(operation.kept.total for operation in head_operations(gpt_22b, batch))
    embedding = sum(operation.kept.total for operation in embedding_operations(gpt_22b, batch))

    assert head == 4 * tokens * 51_200 / 8 + 2 * (2 * tokens * 6144 / 8)
    assert embedding == tokens * 6144 / 8 + 8 * tokens  # and the token numbers
