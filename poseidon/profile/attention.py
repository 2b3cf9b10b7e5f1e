"""The attention half of a layer: grouped-query attention or multi-head latent attention (MLA).

FLOPs: Narayanan et al. 2021 (arXiv 2104.04473), appendix. Kept bytes: Korthikanti et al. 2022 (arXiv 2205.05198),
section 4.1, for any number of key/value heads, and with dropout masks only where the model has dropout.
"""

from __future__ import annotations

from poseidon.inputs.model import Model, MultiHeadLatentAttention
from poseidon.profile.attention_core import attention_core
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.operation import Kept, Operation, elementwise, matmul
from poseidon.profile.residual_stream import norm, normed_input, residual


def attention_operations(model: Model, batch: MicroBatch) -> tuple[Operation, ...]:
    """Norm, projections, core, output projection and residual of one layer, in forward order."""
    if model.mla is not None:
        inner, output_width = _latent_attention(model, model.mla, batch)
    else:
        inner, output_width = _grouped_query_attention(model, batch)
    kept = batch.tokens * output_width * ELEMENT_BYTES
    return (
        norm("attention norm", model.hidden_size, batch),
        *inner,
        matmul("projection", batch.tokens, output_width, model.hidden_size, kept=Kept(kept)),
        residual("attention residual", model, batch),
    )


FUSED_ROTARY_PASSES, ROTARY_PASSES = 2, 10
"""Passes over queries and keys: one kernel reads and writes them once; x cos + rotate_half(x) sin as PyTorch runs it
negates one half (1), concatenates (2), multiplies twice (4) and adds (3)."""


def rotary_passes(batch: MicroBatch) -> int:
    """Passes over queries and keys that applying rotary positions takes."""
    return FUSED_ROTARY_PASSES if batch.fused_rotary else ROTARY_PASSES


def key_value_heads(model: Model, tp: int) -> float:
    """Key/value heads on one device; with more TP ranks than heads each holds a whole one (as in Megatron-LM)."""
    return max(model.num_kv_heads, tp) / tp


def _grouped_query_attention(model: Model, batch: MicroBatch) -> tuple[tuple[Operation, ...], float]:
    query = model.num_attention_heads * model.head_dim / batch.tp
    key = key_value_heads(model, batch.tp) * model.head_dim
    kept = normed_input(model.hidden_size, batch)
    rotated = batch.tokens * (query + key) * ELEMENT_BYTES
    operations = [matmul("qkv", batch.tokens, model.hidden_size, query + 2 * key, kept=kept)]
    if model.qk_norm:
        operations.append(elementwise("qk norm", 2 * rotated, kept=Kept(rotated)))
    if model.max_position_embeddings is None:
        operations.append(elementwise("rotary", rotary_passes(batch) * rotated))
    core = attention_core(model, batch, query, key, key, query)
    return (*operations, *core), query


def _latent_attention(
    model: Model, mla: MultiHeadLatentAttention, batch: MicroBatch
) -> tuple[tuple[Operation, ...], float]:
    """DeepSeek-V2 (arXiv 2405.04434), section 2.1: compressions on every TP rank, expansions split by heads."""
    shard = batch.tokens / batch.sequence_shards
    heads = model.num_attention_heads / batch.tp
    query = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    value = heads * mla.v_head_dim
    kv_expanded = heads * mla.qk_nope_head_dim + value
    operations = (
        *_latent_queries(model, mla, batch, query),
        matmul("kv down", shard, model.hidden_size, mla.kv_lora_rank + mla.qk_rope_head_dim),
        norm("kv norm", mla.kv_lora_rank, batch),
        matmul("kv up", batch.tokens, mla.kv_lora_rank, kv_expanded, kept=normed_input(mla.kv_lora_rank, batch)),
        elementwise("rotary", rotary_passes(batch) * batch.tokens * 2 * query * ELEMENT_BYTES),
        *attention_core(model, batch, query, query, value, value),
    )
    return operations, value


def _latent_queries(
    model: Model, mla: MultiHeadLatentAttention, batch: MicroBatch, query: float
) -> tuple[Operation, ...]:
    """The first of them keeps the layer's normed input, which the compression of keys and values reads too."""
    kept = normed_input(model.hidden_size, batch)
    if mla.q_lora_rank is None:
        return (matmul("q", batch.tokens, model.hidden_size, query, kept=kept),)
    shard = batch.tokens / batch.sequence_shards
    return (
        matmul("q down", shard, model.hidden_size, mla.q_lora_rank, kept=kept),
        norm("q norm", mla.q_lora_rank, batch),
        matmul("q up", batch.tokens, mla.q_lora_rank, query, kept=normed_input(mla.q_lora_rank, batch)),
    )
