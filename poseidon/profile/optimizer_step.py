"""Passes over gradients and optimizer state, bound by memory bandwidth: adding up gradients, the optimizer's step.

Bytes of one parameter with Adam as Megatron-LM runs it (`MixedPrecisionOptimizer.step`, `DistributedOptimizer`): fp32
copies of 16-bit gradients, un-scaling (fp16), the norm and the clipping of the gradients, Adam itself, the copy back to
16-bit weights, and zeroing the gradients.
"""

from __future__ import annotations

from poseidon.inputs.training import Training
from poseidon.profile.timing import DeviceRates

FP32 = 4
ADAM_PASSES = 7
"""Reads gradient, weight and two moments; writes weight and two moments."""
CLIP_PASSES = 3
"""Reads the gradients for their norm; reads and writes them to scale."""


def update_bytes(training: Training) -> int:
    """Bytes that the step reads and writes for each parameter that a device updates."""
    each = training.parameter_bytes
    moved = (ADAM_PASSES + CLIP_PASSES) * FP32 + each.gradient
    if each.gradient < FP32:
        moved += each.gradient + FP32
    if training.precision == "fp16":
        moved += 2 * FP32
    if each.weight < FP32:
        moved += FP32 + each.weight
    return moved


def update_ms(weight_bytes: float, training: Training, rates: DeviceRates) -> float:
    """Time of the step for the parameters whose weights take `weight_bytes`; 0 where the experiment leaves it out."""
    if not training.optimizer_step:
        return 0.0
    return weight_bytes / training.parameter_bytes.weight * update_bytes(training) / rates.bytes_per_ms


def accumulation_ms(weight_bytes: float, training: Training, rates: DeviceRates) -> float:
    """Time of adding one micro-batch's gradients to those before it, where that is a pass of its own: reads the new
    gradients in the precision of the weights, reads and writes the sum."""
    if training.fused_gradient_accumulation:
        return 0.0
    each = training.parameter_bytes
    moved = each.weight + 2 * each.gradient
    return weight_bytes / each.weight * moved / rates.bytes_per_ms
