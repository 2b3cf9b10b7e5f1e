"""One transformer layer as one TP rank runs it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from poseidon.inputs.model import LayerType, Model
from poseidon.inputs.training import Recompute
from poseidon.profile.measure.activation import dropout
from poseidon.profile.measure.attention import GroupedQueryAttention
from poseidon.profile.measure.experts import Experts
from poseidon.profile.measure.feed_forward import Mlp
from poseidon.profile.measure.latent_attention import LatentAttention
from poseidon.profile.measure.norm import Norm
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.residual_stream import has_dropout


class Layer(nn.Module):
    """Attention and MLP (or experts), each behind a norm and added to the residual stream."""

    def __init__(
        self, model: Model, layer_type: LayerType, batch: MicroBatch, tp: TensorParallel, recompute: Recompute
    ) -> None:
        """On the default device in the default type."""
        super().__init__()
        discard = recompute == "selective"
        self.full = recompute == "full"
        self.has_dropout = has_dropout(model)
        self.attention = (
            GroupedQueryAttention(model, batch.seq_length, tp, discard=discard)
            if model.mla is None
            else LatentAttention(model, model.mla, batch.seq_length, tp, discard=discard)
        )
        self.norm = Norm(model, model.hidden_size)
        if layer_type == "moe":
            assert model.moe is not None
            self.feed_forward: Any = Experts(model, model.moe, batch.tokens, tp, discard=discard)
        else:
            self.feed_forward = Mlp(model, model.ffn_hidden_size, tp, discard=discard)

    def forward(self, stream: Any) -> Any:
        """[own tokens, hidden] to the same shape."""
        return _Recomputed.apply(self.run, stream) if self.full else self.run(stream)

    def run(self, stream: Any) -> Any:
        """The layer without full recomputation."""
        stream = stream + self._dropped(self.attention(stream))
        return stream + self._dropped(self.feed_forward(self.norm.make, self.norm.sources(stream)))

    def _dropped(self, value: Any) -> Any:
        return dropout(value) if self.has_dropout else value


class _Recomputed(torch.autograd.Function):
    """Full recomputation: keeps the input, and runs the whole layer again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, run: Any, stream: Any) -> Any:
        ctx.run = run
        ctx.save_for_backward(stream)
        return run(stream)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[None, Any]:
        (stream,) = ctx.saved_tensors
        with torch.enable_grad():
            again = stream.detach().requires_grad_()
            torch.autograd.backward(ctx.run(again), gradient)
        return None, again.grad
