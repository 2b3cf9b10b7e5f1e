"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

Compressions run on every TP rank, on its part of the tokens; expansions and the core are split by heads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from poseidon.inputs.model import Model, MultiHeadLatentAttention
from poseidon.profile.measure.attention import fused_attention
from poseidon.profile.measure.norm import Norm, RmsNorm
from poseidon.profile.measure.product import ColumnParallel, Produce, Replicated, RowParallel, product, same
from poseidon.profile.measure.rotary import Rotary
from poseidon.profile.measure.tensor_parallel import Enter, TensorParallel
from poseidon.profile.measure.weights import matrix, vector


class LatentAttention(nn.Module):
    """Norm, compressions, expansions, core and output projection of one layer, for one TP rank."""

    def __init__(
        self, model: Model, mla: MultiHeadLatentAttention, seq_length: int, tp: TensorParallel, *, discard: bool
    ) -> None:
        """`discard`: selective recomputation."""
        super().__init__()
        hidden = model.hidden_size
        self.tp, self.mla, self.discard, self.seq_length = tp, mla, discard, seq_length
        self.heads = model.num_attention_heads // tp.size
        query = self.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
        self.norm = Norm(model, hidden)
        if mla.q_lora_rank is None:
            self.query = matrix(query, hidden)
        else:
            self.query_down = matrix(mla.q_lora_rank, hidden)
            self.query_down_bias = vector(mla.q_lora_rank) if model.qkv_bias else None
            self.query_norm = RmsNorm(mla.q_lora_rank)
            self.query = matrix(query, mla.q_lora_rank)
        compressed = mla.kv_lora_rank + mla.qk_rope_head_dim
        self.kv_down = matrix(compressed, hidden)
        self.kv_down_bias = vector(compressed) if model.qkv_bias else None
        self.kv_norm = RmsNorm(mla.kv_lora_rank)
        self.kv_up = matrix(self.heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank)
        self.output = matrix(hidden, self.heads * mla.v_head_dim)
        self.output_bias = vector(hidden) if model.attention_output_bias else None
        self.rotary = Rotary(seq_length, mla.qk_rope_head_dim)

    def forward(self, stream: Any) -> Any:
        """[own tokens, hidden] to the same shape; the residual is added outside."""
        produce, sources = (self.norm.make, self.norm.sources(stream)) if self.discard else (same, (self.norm(stream),))
        attended = self._core(self._queries(produce, sources), *self._keys_and_values(produce, sources))
        form = RowParallel(self.tp)
        return product(form, self.output, same, (attended,), discard=False, bias=self.output_bias)

    def _queries(self, produce: Produce, sources: tuple[Any, ...]) -> Any:
        """[batch, sequence, heads, nope + rope]."""
        column = ColumnParallel(self.tp)
        if self.mla.q_lora_rank is None:
            query = product(column, self.query, produce, sources, discard=self.discard)
        else:
            norm, bias = self.query_norm, self.query_down_bias
            down = product(Replicated(), self.query_down, produce, sources, discard=self.discard, bias=bias)
            query = product(column, self.query, norm.make, norm.sources(down), discard=self.discard)
        return query.view(-1, self.seq_length, self.heads, self.mla.qk_nope_head_dim + self.mla.qk_rope_head_dim)

    def _keys_and_values(self, produce: Produce, sources: tuple[Any, ...]) -> tuple[Any, Any]:
        """Expanded [batch, sequence, heads, nope + value], and the rotary key [batch, sequence, 1, rope]."""
        mla, norm = self.mla, self.kv_norm
        bias = self.kv_down_bias
        down = product(Replicated(), self.kv_down, produce, sources, discard=self.discard, bias=bias)
        compressed, rope = torch.split(down, (mla.kv_lora_rank, mla.qk_rope_head_dim), dim=-1)
        column = ColumnParallel(self.tp)
        expanded = product(column, self.kv_up, norm.make, norm.sources(compressed), discard=self.discard)
        expanded = expanded.view(-1, self.seq_length, self.heads, mla.qk_nope_head_dim + mla.v_head_dim)
        return expanded, Enter.apply(self.tp, rope).view(-1, self.seq_length, 1, mla.qk_rope_head_dim)

    def _core(self, query: Any, expanded: Any, rope_key: Any) -> Any:
        """Fused attention; values are padded to the width of keys, as fused kernels of one head size ask for."""
        mla = self.mla
        nope, rope = torch.split(query, (mla.qk_nope_head_dim, mla.qk_rope_head_dim), dim=-1)
        key, value = torch.split(expanded, (mla.qk_nope_head_dim, mla.v_head_dim), dim=-1)
        query = torch.cat((nope, self.rotary(rope)), dim=-1)
        turned = self.rotary(rope_key).expand(-1, -1, self.heads, -1)
        key = torch.cat((key, turned), dim=-1)
        missing = query.shape[-1] - mla.v_head_dim
        if missing <= 0:
            return fused_attention(query, key, value.contiguous())
        attended = fused_attention(query, key, functional.pad(value, (0, missing)))
        return attended.view(-1, self.heads, query.shape[-1])[..., : mla.v_head_dim].flatten(1)
