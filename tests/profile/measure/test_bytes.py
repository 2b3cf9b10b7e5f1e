from __future__ import annotations

import pytest

from poseidon.inputs.model import Model
from poseidon.profile.layer import kept_activation_bytes, layer_operations
from poseidon.profile.micro_batch import MicroBatch

torch = pytest.importorskip("torch")

from poseidon.profile.measure.cells import ComputeCell  # noqa: E402
from poseidon.profile.measure.device import Device  # noqa: E402
from poseidon.profile.measure.job import MeasureJob  # noqa: E402
from poseidon.profile.measure.peak_bytes import peak_bytes  # noqa: E402
from poseidon.profile.measure.saved_bytes import saved_bytes  # noqa: E402
from poseidon.profile.measure.tensor_parallel import TensorParallel  # noqa: E402
from poseidon.profile.measure.work import Work, work_of  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
SEQ_LENGTH, SIZE = 64, 2
TOKENS = SEQ_LENGTH * SIZE


def work(model: Model, part: str, recompute: str = "none", tp: TensorParallel | None = None) -> Work:
    job = MeasureJob(model, "cpu", SEQ_LENGTH, (SIZE,), (1,))
    return work_of(ComputeCell(part, 1, SIZE, recompute), job, tp or TensorParallel(), CPU)


def kept(model: Model, part: str, recompute: str = "none") -> int:
    made = work(model, part, recompute)
    return saved_bytes(made.forward, made.module)


def plain_mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))


def test_an_mlp_keeps_its_input_and_both_sides_of_the_activation() -> None:
    mlp, value = plain_mlp(), torch.randn(10, 8, requires_grad=True)
    assert saved_bytes(lambda: mlp(value), mlp) == 4 * 10 * (8 + 32 + 32)


def test_memory_that_several_tensors_share_counts_once() -> None:
    value = torch.randn(10, 8, requires_grad=True)
    assert saved_bytes(lambda: value * value[:5].sum(), torch.nn.Module()) == 4 * (10 * 8 + 1)


def test_the_peak_of_an_mlp() -> None:
    """Forward: 32 before and after the activation, 8 out. Nothing is freed before the sum that follows is made."""
    mlp, value = plain_mlp(), torch.randn(10, 8)
    with torch.no_grad():
        hidden = peak_bytes(lambda: mlp[1](mlp[0](value)), Device("cpu", 0))
    assert hidden == 4 * 10 * (32 + 32)
    # Kept until the backward pass, then the gradient of the widest tensor beside them.
    both = peak_bytes(lambda: mlp(value).sum().backward(), Device("cpu", 0))
    assert both >= 4 * 10 * (32 + 32) + 4 * 10 * 32
    assert peak_bytes(lambda: mlp(value).sum().backward(), Device("cpu", 0)) == both


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_dense_layer_keeps_what_the_formulas_say(dense: Model, recompute: str) -> None:
    batch = MicroBatch(SIZE, SEQ_LENGTH)
    operations = layer_operations(dense, "dense", batch)
    assert kept(dense, "dense", recompute) == kept_activation_bytes(operations, dense, batch, recompute)


def test_every_layer_keeps_what_the_formulas_say_but_for_named_differences(model: Model) -> None:
    batch = MicroBatch(SIZE, SEQ_LENGTH)
    for layer_type in model.distinct_layer_types:
        expected = kept_activation_bytes(layer_operations(model, layer_type, batch), model, batch, "none")
        if model.norm == "layernorm":
            expected += 2 * 2 * TOKENS * 2  # mean and deviation of each token, two norms
        if layer_type == "moe":
            assert model.moe is not None
            expected -= 4 * TOKENS * model.moe.num_experts  # probabilities alone, no logits
            expected += 2 * TOKENS * model.moe.experts_per_token  # the router's weight of each routed row
        if model.mla is not None:
            heads, mla = model.num_attention_heads, model.mla
            padding = mla.qk_nope_head_dim + mla.qk_rope_head_dim - mla.v_head_dim
            expected += 2 * TOKENS * heads * padding  # values are padded to the width of keys
            expected += 2 * TOKENS * heads * (padding + mla.v_head_dim)  # and so is the core's output
            expected += 2 * TOKENS * mla.qk_rope_head_dim  # the rotary key lies beside the compressed one
        assert kept(model, layer_type) == expected


def test_the_head_keeps_norm_input_and_output_and_fp32_probabilities(dense: Model) -> None:
    streams = 2 * 2 * TOKENS * dense.hidden_size
    targets = TOKENS * (8 + 1)  # their numbers, and whether they are on this rank
    assert kept(dense, "head") == streams + 4 * TOKENS * dense.vocab_size + targets


def test_the_embedding_keeps_its_tokens(dense: Model) -> None:
    assert kept(dense, "embedding") == 8 * TOKENS


def test_a_stack_keeps_the_sum_of_its_layers(dense: Model) -> None:
    first, second = work(dense, "dense"), work(dense, "dense")
    both = torch.nn.ModuleList([first.module, second.module])
    assert saved_bytes(lambda: second.module(first.forward()), both) == 2 * kept(dense, "dense")


def test_weights_are_the_model_s(model: Model) -> None:
    for layer_type in model.distinct_layer_types:
        assert work(model, layer_type).weight_bytes == 2 * model.layer_parameters(layer_type)
    assert work(model, "embedding").weight_bytes == 2 * model.embedding_parameters
    tied = model.output_projection_parameters if model.tied_embeddings else 0
    assert work(model, "head").weight_bytes == 2 * (model.head_parameters + tied)


def test_a_rank_of_two_holds_half_of_the_weights_and_all_of_the_norms(dense: Model) -> None:
    shard = work(dense, "dense", tp=TensorParallel(2))
    norms = 2 * dense.hidden_size
    assert shard.weight_bytes == (2 * (dense.layer_parameters("dense") - norms)) // 2 + 2 * norms


def test_a_pass_peaks_above_what_it_keeps(model: Model) -> None:
    for layer_type in model.distinct_layer_types:
        made = work(model, layer_type)
        peak = peak_bytes(lambda made=made: made.backward(made.forward()), Device("cpu", 0))
        assert kept(model, layer_type) < peak < 4 * kept(model, layer_type)


def test_gradients_are_added_up_in_fp32_and_dropped(dense: Model) -> None:
    made = work(dense, "dense")
    made.backward(made.forward())
    assert all(parameter.grad is None for parameter in made.module.parameters())
