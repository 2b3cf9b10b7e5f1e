"""The constants of the analytic profile, each with its origin; docs/profile.md tells how well they do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poseidon.inputs.accelerator import Accelerator


@dataclass(frozen=True)
class Calibration:
    """What turns FLOPs and bytes into time: the defaults, which an accelerator's `calibration` block replaces."""

    compute_efficiency: float = 0.8
    """Fraction of the peak in the best large matrix product, where an accelerator doesn't state its own: median of the
    14 measured devices (0.51-0.97) of stas00/ml-engineering, "maximum achievable matmul FLOPS"."""
    training_share: float = 0.85
    """Part of that rate that the matrix products of a training step reach: fitted."""
    half_rate_side: float = 128.0
    """A matrix product whose smallest side is n runs at n / (n + this) of the rate: fitted."""
    attention_share: float = 0.6
    """Part of that rate that fused attention reaches: 0.50-0.73 of the peak on A100 (Dao 2023, arXiv 2307.08691,
    section 4.1)."""
    forward_overhead_us: float = 30.0
    """Start of one operation of the forward pass (launches, book-keeping of the framework): fitted. The backward pass
    is started from compiled code; the measured layers show no such time there."""
    collective_efficiency: float = 0.77
    """Part of a link's bandwidth that a ring of one node reaches: 232 of 300 GB/s on 8 A100, 126 of 175 on 8 Ascend
    910B, 370 of 450 on 8 H100 (stas00/ml-engineering, network; gameofdimension/limulidae)."""
    backward_exposed_share: float = 0.5
    """Part of the TP communication of the backward pass that computation doesn't hide: Megatron-LM runs the one of each
    column-parallel product beside the weight gradient (Korthikanti et al. 2022, section 4.2.2)."""


DEFAULT_CALIBRATION = Calibration()


def calibration_of(accelerator: Accelerator, base: Calibration = DEFAULT_CALIBRATION) -> Calibration:
    """`base` with what the accelerator's own calibration says."""
    return replace(base, **accelerator.calibration.model_dump(exclude_none=True))
