"""Grouped-query attention, split over TP ranks by heads."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from poseidon.inputs.model import Model
from poseidon.profile.measure.norm import Norm, RmsNorm
from poseidon.profile.measure.product import ColumnParallel, RowParallel, product, same
from poseidon.profile.measure.rotary import Rotary
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.measure.weights import matrix, vector


def fused_attention(query: Any, key: Any, value: Any) -> Any:
    """Causal attention of [batch, sequence, heads, width] tensors, fused; the output is [tokens, heads x width].

    Keys and values may have fewer heads. torch's fused kernels return the output in the order of the input, so that it
    is not copied.
    """
    options = {"is_causal": True} if key.shape[2] == query.shape[2] else {"is_causal": True, "enable_gqa": True}
    operands = (tensor.transpose(1, 2) for tensor in (query, key, value))
    output = functional.scaled_dot_product_attention(*operands, **options).transpose(1, 2)
    return output.reshape(-1, output.shape[2] * output.shape[3])


class GroupedQueryAttention(nn.Module):
    """Norm, projections, core and output projection of one layer, for one TP rank."""

    def __init__(self, model: Model, seq_length: int, tp: TensorParallel, *, discard: bool) -> None:
        """`discard`: selective recomputation."""
        super().__init__()
        self.tp, self.discard, self.seq_length, self.head_dim = tp, discard, seq_length, model.head_dim
        self.heads = model.num_attention_heads // tp.size
        self.kv_heads = max(1, model.num_kv_heads // tp.size)
        query, key = self.heads * model.head_dim, self.kv_heads * model.head_dim
        self.norm = Norm(model, model.hidden_size)
        self.qkv = matrix(query + 2 * key, model.hidden_size)
        self.qkv_bias = vector(query + 2 * key) if model.qkv_bias else None
        self.output = matrix(model.hidden_size, query)
        self.output_bias = vector(model.hidden_size) if model.attention_output_bias else None
        self.query_norm = RmsNorm(model.head_dim) if model.qk_norm else None
        self.key_norm = RmsNorm(model.head_dim) if model.qk_norm else None
        self.rotary = Rotary(seq_length, model.head_dim) if model.max_position_embeddings is None else None

    def forward(self, stream: Any) -> Any:
        """[own tokens, hidden] to the same shape; the residual is added outside."""
        norm = self.norm
        qkv = product(
            ColumnParallel(self.tp),
            self.qkv,
            norm.make,
            norm.sources(stream),
            discard=self.discard,
            bias=self.qkv_bias,
        )
        attended = fused_attention(*self._heads(qkv))
        form = RowParallel(self.tp)
        return product(form, self.output, same, (attended,), discard=False, bias=self.output_bias)

    def _heads(self, qkv: Any) -> tuple[Any, Any, Any]:
        """Query, key and value of [batch, sequence, heads, width]."""
        split = qkv.view(-1, self.seq_length, self.heads + 2 * self.kv_heads, self.head_dim)
        query, key, value = torch.split(split, (self.heads, self.kv_heads, self.kv_heads), dim=2)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        if self.rotary is not None:
            query, key = self.rotary(query), self.rotary(key)
        if self.query_norm is None and self.rotary is not None:
            # A view would keep the whole of qkv beside the new query and key. Norms keep it anyway.
            value = value.contiguous()
        return query, key, value
