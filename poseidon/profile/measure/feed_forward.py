"""A dense MLP, gated or not, split over TP ranks by its width."""

from __future__ import annotations

from typing import Any

from torch import nn

from poseidon.inputs.model import Model
from poseidon.profile.measure.activation import gated_silu, gelu
from poseidon.profile.measure.product import ColumnParallel, Produce, RowParallel, product
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.measure.weights import matrix, vector


class Mlp(nn.Module):
    """Up (and gate), activation and down, for one TP rank."""

    def __init__(self, model: Model, width: int, tp: TensorParallel, *, discard: bool) -> None:
        """`width`: of the whole MLP; `discard`: selective recomputation."""
        super().__init__()
        inner = width // tp.size
        branches = 2 if model.gated_mlp else 1
        self.tp, self.discard = tp, discard
        self.activate = gated_silu if model.gated_mlp else gelu
        self.up = matrix(branches * inner, model.hidden_size)
        self.up_bias = vector(branches * inner) if model.mlp_bias else None
        self.down = matrix(model.hidden_size, inner)
        self.down_bias = vector(model.hidden_size) if model.mlp_bias else None

    def forward(self, produce: Produce, sources: tuple[Any, ...]) -> Any:
        """The MLP of produce(*sources): [own tokens, hidden] to the same shape."""
        column, row = ColumnParallel(self.tp), RowParallel(self.tp)
        branches = product(column, self.up, produce, sources, discard=self.discard, bias=self.up_bias)
        return product(row, self.down, self.activate, (branches,), discard=self.discard, bias=self.down_bias)
