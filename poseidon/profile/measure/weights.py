"""Parameters of measured layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

STANDARD_DEVIATION = 0.02
"""GPT-2's; large weights would overflow in fp16."""


def matrix(*shape: int) -> Any:
    """A random weight of a product, on the default device in the default type."""
    return nn.Parameter(torch.randn(shape) * STANDARD_DEVIATION)


def vector(width: int) -> Any:
    """A bias."""
    return nn.Parameter(torch.zeros(width))


def accumulate_in_fp32(module: Any) -> None:
    """Adds each weight's gradient to an fp32 one as soon as it is made, and drops it (as Megatron-LM does).

    Without its fused kernel, which adds inside the product: here the gradient is written once in half precision.
    """
    for parameter in module.parameters():
        if parameter.requires_grad:
            total = torch.zeros_like(parameter, dtype=torch.float32)
            parameter.register_post_accumulate_grad_hook(_adder(total))


def _adder(total: Any) -> Any:
    def add(parameter: Any) -> None:
        total.add_(parameter.grad)
        parameter.grad = None

    return add
