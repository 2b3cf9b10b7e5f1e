"""From operations to milliseconds: a roofline with an efficiency for small matrix products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poseidon.inputs.accelerator import Accelerator
from poseidon.profile.calibration import Calibration
from poseidon.profile.operation import Operation


@dataclass(frozen=True)
class DeviceRates:
    """What a device achieves: large matrix products (FLOP/ms), fused attention (FLOP/ms), memory traffic (bytes/ms)."""

    matmul_flops_per_ms: float
    attention_flops_per_ms: float
    bytes_per_ms: float
    half_rate_side: float
    forward_overhead_ms: float


def device_rates(accelerator: Accelerator, calibration: Calibration) -> DeviceRates:
    """The rates of an accelerator, with the calibration's defaults for what it doesn't state."""
    efficiency = accelerator.compute_efficiency or calibration.compute_efficiency
    flops_per_ms = accelerator.peak_tflops * 1e9 * efficiency * calibration.training_share
    return DeviceRates(
        matmul_flops_per_ms=flops_per_ms,
        attention_flops_per_ms=flops_per_ms * calibration.attention_share,
        bytes_per_ms=accelerator.memory_bytes_per_s / 1e3 * accelerator.memory_efficiency,
        half_rate_side=calibration.half_rate_side,
        forward_overhead_ms=calibration.forward_overhead_us / 1e3,
    )


def _work_ms(operation: Operation, flops: float, moved_bytes: float, rates: DeviceRates) -> float:
    """The slower of computing and moving."""
    if operation.fused_attention:
        compute_ms = flops / rates.attention_flops_per_ms
    elif flops:
        side = operation.smallest_side
        compute_ms = flops / rates.matmul_flops_per_ms * (side + rates.half_rate_side) / side
    else:
        compute_ms = 0.0
    return max(compute_ms, moved_bytes / rates.bytes_per_ms)


def forward_ms(operations: Iterable[Operation], rates: DeviceRates) -> float:
    """Time of one forward pass through the operations, without communication."""
    return sum(_work_ms(op, op.forward_flops, op.forward_bytes, rates) + rates.forward_overhead_ms for op in operations)


def backward_ms(operations: Iterable[Operation], rates: DeviceRates) -> float:
    """Time of one backward pass through the operations (gradients of inputs and weights), without communication."""
    return sum(_work_ms(op, op.backward_flops, op.backward_bytes, rates) for op in operations)
