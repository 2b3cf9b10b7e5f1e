"""Normalisations that keep their input alone on every device."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from poseidon.inputs.model import Model

EPSILON = 1e-5


class _RmsNorm(torch.autograd.Function):
    """torch's rms_norm, run once more in the backward pass: where it is no fused kernel it would keep two fp32 copies
    of its input."""

    @staticmethod
    def forward(ctx: Any, value: Any, weight: Any) -> Any:
        ctx.save_for_backward(value, weight)
        return functional.rms_norm(value, weight.shape, weight, EPSILON)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, Any]:
        with torch.enable_grad():
            value, weight = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
            output = functional.rms_norm(value, weight.shape, weight, EPSILON)
        value_gradient, weight_gradient = torch.autograd.grad(output, (value, weight), gradient)
        return value_gradient, weight_gradient


class Norm(nn.Module):
    """The model's normalisation over a given width."""

    def __init__(self, model: Model, width: int) -> None:
        """A scale, and for layernorm a bias."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if model.norm == "layernorm" else None

    def sources(self, value: Any) -> tuple[Any, ...]:
        """What `make` is called with."""
        return (value, self.weight) if self.bias is None else (value, self.weight, self.bias)

    @staticmethod
    def make(value: Any, weight: Any, bias: Any | None = None) -> Any:
        """The normalised value."""
        if bias is None:
            return _RmsNorm.apply(value, weight)
        return functional.layer_norm(value, weight.shape, weight, bias, EPSILON)

    def forward(self, value: Any) -> Any:
        """The normalised value."""
        return self.make(*self.sources(value))


class RmsNorm(Norm):
    """A normalisation with a scale alone, whatever the model's own is: inside attention (Qwen3, DeepSeek)."""

    def __init__(self, width: int) -> None:
        """One scale a feature."""
        nn.Module.__init__(self)
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = None
