"""Rotary position embedding (Su et al. 2021, arXiv 2104.09864)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

BASE = 10_000.0


class Rotary(nn.Module):
    """Turns pairs of features by angles that grow with the position: [batch, sequence, heads, width]."""

    def __init__(self, seq_length: int, width: int) -> None:
        """Tables for `seq_length` positions; buffers, not parameters."""
        super().__init__()
        rates = BASE ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(seq_length), rates).repeat(1, 2)[:, None, :]
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, value: Any) -> Any:
        """The turned value, a new tensor; keeps nothing but its tables."""
        first, second = value.chunk(2, dim=-1)
        return value * self.cosine + torch.cat((-second, first), dim=-1) * self.sine
