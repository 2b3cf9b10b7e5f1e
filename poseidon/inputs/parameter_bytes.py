"""What a parameter takes in training, by precision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ParameterBytes:
    """Bytes of one parameter: its weight, its gradient, its optimizer state (Adam)."""

    weight: int
    gradient: int
    optimizer: int


MIXED_PRECISION = ParameterBytes(weight=2, gradient=4, optimizer=12)
"""16-bit weights, fp32 gradients, fp32 master weights and moments (Rajbhandari et al. 2020, arXiv 1910.02054, section
3.1; Megatron-LM for bf16)."""
SIXTEEN_BIT_GRADIENTS = ParameterBytes(weight=2, gradient=2, optimizer=12)
"""Gradients kept and reduced in 16 bits (Megatron-LM for fp16, DeepSpeed)."""
FULL_PRECISION = ParameterBytes(weight=4, gradient=4, optimizer=8)
"""Everything in fp32; the weights are their own master copy."""
