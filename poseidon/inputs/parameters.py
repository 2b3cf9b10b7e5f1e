"""Parameter counts of a model, by formula.

Every count is exact: a matrix counts rows x columns, a bias its length, a norm one scale per feature and, for
layernorm, one bias. The multi-token-prediction layers of DeepSeek-V3 are not part of the model here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poseidon.inputs.model import LayerType, Model


def layer_parameters(model: Model, layer_type: LayerType) -> int:
    """Parameters of one layer: attention, its MLP or experts, and two norms."""
    mlp = (
        _expert_parameters(model, active=False) if layer_type == "moe" else mlp_parameters(model, model.ffn_hidden_size)
    )
    return attention_parameters(model) + mlp + 2 * norm_parameters(model)


def active_layer_parameters(model: Model, layer_type: LayerType) -> int:
    """Parameters of one layer that a token meets."""
    mlp = (
        _expert_parameters(model, active=True) if layer_type == "moe" else mlp_parameters(model, model.ffn_hidden_size)
    )
    return attention_parameters(model) + mlp + 2 * norm_parameters(model)


def norm_parameters(model: Model) -> int:
    """Parameters of one normalisation over the hidden size."""
    return model.hidden_size * (1 if model.norm == "rmsnorm" else 2)


def attention_parameters(model: Model) -> int:
    """Parameters of the attention's projections, with their biases and inner norms."""
    if model.mla is not None:
        return _latent_attention_parameters(model)
    query = model.num_attention_heads * model.head_dim
    key_value = 2 * model.num_kv_heads * model.head_dim
    count = model.hidden_size * (query + key_value) + query * model.hidden_size
    count += (query + key_value) * model.qkv_bias + model.hidden_size * model.attention_output_bias
    return count + 2 * model.head_dim * model.qk_norm


def _latent_attention_parameters(model: Model) -> int:
    """DeepSeek-V2, arXiv 2405.04434, equations 9-19, and its norms after each compression.

    As in the published code a bias (`qkv_bias`) exists only on the two compressions, not on the expansions.
    """
    mla = model.mla
    assert mla is not None
    hidden, heads = model.hidden_size, model.num_attention_heads
    query = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    compressed = mla.kv_lora_rank + mla.qk_rope_head_dim
    if mla.q_lora_rank is None:
        count = hidden * query
    else:
        count = hidden * mla.q_lora_rank + mla.q_lora_rank + mla.q_lora_rank * query
        count += mla.q_lora_rank * model.qkv_bias
    count += hidden * compressed + mla.kv_lora_rank + compressed * model.qkv_bias
    count += mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    return count + heads * mla.v_head_dim * hidden + hidden * model.attention_output_bias


def mlp_parameters(model: Model, ffn_hidden_size: int) -> int:
    """Parameters of one MLP of the given width: two matrices, three when gated."""
    inner = 2 if model.gated_mlp else 1
    biases = (inner * ffn_hidden_size + model.hidden_size) * model.mlp_bias
    return (inner + 1) * model.hidden_size * ffn_hidden_size + biases


def router_parameters(model: Model) -> int:
    """Parameters of an MoE layer's router."""
    moe = model.moe
    assert moe is not None
    return model.hidden_size * moe.num_experts + moe.num_experts * moe.router_bias


def _expert_parameters(model: Model, active: bool) -> int:
    moe = model.moe
    assert moe is not None
    num_experts = moe.experts_per_token if active else moe.num_experts
    experts = num_experts * mlp_parameters(model, moe.expert_ffn_hidden_size)
    shared = mlp_parameters(model, moe.shared_ffn_hidden_size) if moe.shared_ffn_hidden_size else 0
    return experts + shared + router_parameters(model)


def embedding_parameters(model: Model) -> int:
    """Parameters before the first layer."""
    return (
        model.vocab_size * model.embedding_size
        + (model.max_position_embeddings or 0) * model.hidden_size
        + _projection_parameters(model)
    )


def head_parameters(model: Model) -> int:
    """Parameters after the last layer; a tied output projection counts 0 here."""
    output = 0 if model.tied_embeddings else model.vocab_size * model.embedding_size
    return norm_parameters(model) * model.final_norm + _projection_parameters(model) + output


def _projection_parameters(model: Model) -> int:
    """OPT-350M's projection between embedding size and hidden size (without bias), at each end."""
    return model.embedding_size * model.hidden_size if model.embedding_size != model.hidden_size else 0
