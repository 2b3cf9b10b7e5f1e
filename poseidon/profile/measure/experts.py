"""A mixture of experts: every TP group holds all experts, each split over its ranks (docs/profile.md).

Routing is forced to be balanced, so that experts are one batched product (what a grouped product is then).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from poseidon.inputs.model import MixtureOfExperts, Model
from poseidon.profile.measure.activation import gated_silu, gelu
from poseidon.profile.measure.feed_forward import Mlp
from poseidon.profile.measure.product import Grouped, Produce, Replicated, product, same
from poseidon.profile.measure.tensor_parallel import Enter, Leave, TensorParallel
from poseidon.profile.measure.weights import matrix, vector


class Experts(nn.Module):
    """Router, dispatch, experts, combine and shared experts, for one TP rank."""

    def __init__(self, model: Model, moe: MixtureOfExperts, tokens: int, tp: TensorParallel, *, discard: bool) -> None:
        """`tokens`: of the micro-batch; `discard`: selective recomputation."""
        super().__init__()
        hidden, inner = model.hidden_size, moe.expert_ffn_hidden_size // tp.size
        branches = 2 if model.gated_mlp else 1
        self.tp, self.discard, self.tokens = tp, discard, tokens
        self.activate = gated_silu if model.gated_mlp else gelu
        self.router = matrix(moe.num_experts, hidden)
        if moe.router_bias:  # steers the choice of experts, without a gradient
            self.router_bias = nn.Parameter(torch.zeros(moe.num_experts), requires_grad=False)
        self.up = matrix(moe.num_experts, hidden, branches * inner)
        self.up_bias = vector(moe.num_experts * branches * inner) if model.mlp_bias else None
        self.down = matrix(moe.num_experts, inner, hidden)
        self.down_bias = vector(moe.num_experts * hidden) if model.mlp_bias else None
        self.shared = (
            Mlp(model, moe.shared_ffn_hidden_size, tp, discard=discard) if moe.shared_ffn_hidden_size else None
        )
        # Choice j of token i is expert (i k + j) mod E; where that leaves experts unequal some get a row more.
        rows = -(-tokens * moe.experts_per_token // moe.num_experts)
        routed = torch.arange(rows * moe.num_experts).view(rows, -1).t().contiguous() % (tokens * moe.experts_per_token)
        self.register_buffer("row_token", (routed // moe.experts_per_token).flatten())
        self.register_buffer("row_choice", routed.flatten())
        choices = torch.arange(tokens * moe.experts_per_token).view(tokens, -1) % moe.num_experts
        self.register_buffer("own_choices", choices.chunk(tp.sequence_shards)[tp.rank % tp.sequence_shards])

    def forward(self, produce: Produce, sources: tuple[Any, ...]) -> Any:
        """The experts' output for produce(*sources): [own tokens, hidden] to the same shape."""
        normed = produce(*sources)
        if not self.discard:
            produce, sources = same, (normed,)
        scale = self._scales(produce, sources)
        total = Enter.apply(self.tp, normed)
        routed = total.index_select(0, self.row_token).view(self.up.shape[0], -1, total.shape[1])
        branches = product(Grouped(), self.up, same, (routed,), discard=False, bias=_by_expert(self.up, self.up_bias))
        outputs = product(
            Grouped(),
            self.down,
            self.activate,
            (branches, scale),
            discard=self.discard,
            bias=_by_expert(self.down, self.down_bias),
        )
        output = Leave.apply(self.tp, _Combined.apply(outputs.flatten(0, 1), self.row_token, total.shape[0]))
        return output if self.shared is None else output + self.shared(produce, sources)

    def _scales(self, produce: Produce, sources: tuple[Any, ...]) -> Any:
        """The router's weight of each routed row: [experts, rows, 1]."""
        logits = product(Replicated(), self.router, produce, sources, discard=self.discard)
        probabilities = torch.softmax(logits, dim=-1, dtype=torch.float32)
        chosen = Enter.apply(self.tp, probabilities.gather(1, self.own_choices).to(logits.dtype))
        return chosen.flatten().index_select(0, self.row_choice).view(self.up.shape[0], -1, 1)


class _Combined(torch.autograd.Function):
    """The sum of each token's rows; keeps none of them (torch's index_add would)."""

    @staticmethod
    def forward(ctx: Any, rows: Any, row_token: Any, num_tokens: int) -> Any:
        ctx.save_for_backward(row_token)
        return rows.new_zeros((num_tokens, rows.shape[1])).index_add_(0, row_token, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, None, None]:
        (row_token,) = ctx.saved_tensors
        return gradient.index_select(0, row_token), None, None


def _by_expert(weight: Any, bias: Any | None) -> Any | None:
    return None if bias is None else bias.view(weight.shape[0], 1, weight.shape[2])
