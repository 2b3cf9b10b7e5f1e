"""The feed-forward half of a layer: a dense MLP (gated or not), or a mixture of experts.

Experts are not spread over devices (no expert parallelism): every TP group holds all of them, each split by TP, and
routing is taken to be balanced. Tokens are gathered over TP before they are routed (Megatron-LM's all-gather
dispatcher), so that a MoE layer moves as much between TP ranks as a dense one.
"""

from __future__ import annotations

from poseidon.inputs.model import LayerType, MixtureOfExperts, Model
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.operation import NOTHING_KEPT, Kept, Operation, elementwise, matmul
from poseidon.profile.residual_stream import norm, normed_input, residual

ROUTER_BYTES = 8
"""Logits and probabilities of the router, both fp32."""


def feed_forward_operations(model: Model, layer_type: LayerType, batch: MicroBatch) -> tuple[Operation, ...]:
    """Norm, MLP or experts, and residual of one layer, in forward order."""
    if layer_type == "moe":
        assert model.moe is not None
        body = _mixture_of_experts(model, model.moe, batch)
    else:
        kept = normed_input(model.hidden_size, batch)
        body = _mlp("mlp", model, model.ffn_hidden_size, batch, batch.tokens, 1, kept)
    return (norm("mlp norm", model.hidden_size, batch), *body, residual("mlp residual", model, batch))


def _mlp(
    name: str,
    model: Model,
    ffn_hidden_size: int,
    batch: MicroBatch,
    rows: float,
    count: int,
    input_kept: Kept,
) -> tuple[Operation, ...]:
    """Up (and gate), activation, down, for `count` MLPs with `rows` tokens each."""
    width = ffn_hidden_size / batch.tp
    branches = 2 if model.gated_mlp else 1
    activated = rows * count * width * ELEMENT_BYTES
    down_kept = Kept(unless_selective=activated) if batch.flash_attention else Kept(activated)
    return (
        matmul(f"{name} up", rows, model.hidden_size, branches * width, count=count, kept=input_kept),
        elementwise(
            f"{name} activation",
            _activation_passes(branches, batch) * activated,
            kept=Kept(branches * activated),
            replayed=batch.flash_attention,
        ),
        matmul(f"{name} down", rows, width, model.hidden_size, count=count, kept=down_kept),
    )


def _activation_passes(branches: int, batch: MicroBatch) -> int:
    """Reads of each branch and one write; without fusion the activation of the gate is written and read once more."""
    return branches + 1 + (2 if branches > 1 and not batch.fused_activation else 0)


def _mixture_of_experts(model: Model, moe: MixtureOfExperts, batch: MicroBatch) -> tuple[Operation, ...]:
    """Router, dispatch, experts, combine, shared experts.

    The routed copies of the tokens are not split by TP: every rank keeps all of them as the input of its slice of each
    expert.
    """
    hidden = model.hidden_size
    shard = batch.tokens / batch.sequence_shards
    routed = batch.tokens * moe.experts_per_token
    routed_bytes = float(routed * hidden * ELEMENT_BYTES)
    rows = routed / moe.num_experts
    return (
        matmul("router", shard, hidden, moe.num_experts, kept=normed_input(hidden, batch)),
        elementwise(
            "routing", shard * moe.num_experts * ROUTER_BYTES, kept=Kept(shard * moe.num_experts * ROUTER_BYTES)
        ),
        elementwise("dispatch", 2 * routed_bytes),
        *_mlp("expert", model, moe.expert_ffn_hidden_size, batch, rows, moe.num_experts, Kept(routed_bytes)),
        elementwise("combine", routed_bytes + batch.tokens * hidden * ELEMENT_BYTES),
        *(
            _mlp("shared", model, moe.shared_ffn_hidden_size, batch, batch.tokens, 1, NOTHING_KEPT)
            if moe.shared_ffn_hidden_size
            else ()
        ),
    )
