"""Activations of an MLP, and dropout, that keep what a fused kernel would keep."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

DROPOUT = 0.1
"""GPT-2, OPT and Megatron's GPT train with it; the cost doesn't depend on the rate."""


class _GatedSilu(torch.autograd.Function):
    """silu(gate) x up, from one tensor [..., gate | up]: keeps that tensor alone (autograd would also keep silu(gate)).

    With `scale` [..., 1] (the router's weight of each row) the product is scaled, and the scale kept too.
    """

    @staticmethod
    def forward(ctx: Any, gate_and_up: Any, scale: Any | None) -> Any:
        ctx.save_for_backward(gate_and_up, scale)
        gate, up = gate_and_up.chunk(2, dim=-1)
        output = functional.silu(gate).mul_(up)
        return output if scale is None else output.mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, Any]:
        gate_and_up, scale = ctx.saved_tensors
        gate, up = gate_and_up.chunk(2, dim=-1)
        sigmoid = torch.sigmoid(gate)
        silu = gate * sigmoid
        scale_gradient = None
        if scale is not None:
            scale_gradient = (gradient * silu).mul_(up).sum(-1, keepdim=True)
            gradient = gradient * scale
        slope = sigmoid.add_(silu - silu * sigmoid)  # d silu / d gate = s + x s (1 - s)
        return torch.cat((slope.mul_(up).mul_(gradient), silu.mul_(gradient)), dim=-1), scale_gradient


def gated_silu(gate_and_up: Any, scale: Any | None = None) -> Any:
    """SwiGLU (Shazeer 2020, arXiv 2002.05202) of [..., gate | up]."""
    return _GatedSilu.apply(gate_and_up, scale)


def gelu(value: Any, scale: Any | None = None) -> Any:
    """GELU, which keeps its input."""
    activated = functional.gelu(value)
    return activated if scale is None else activated * scale


def dropout(value: Any) -> Any:
    """Dropout that keeps a mask of one byte an element on every device."""
    return torch.native_dropout(value, DROPOUT, True)[0]
