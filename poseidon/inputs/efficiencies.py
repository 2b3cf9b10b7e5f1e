"""How far from its peaks an accelerator trains: the calibrated parameters of the analytic profile."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from poseidon.inputs.fields import Efficiency, LatencyUs
from poseidon.inputs.file_model import FileModel


class Efficiencies(FileModel):
    """Parameters of the analytic profile that hold for one accelerator; absent ones keep the profile's defaults.

    `poseidon calibrate` fits them to measurements; docs/profile.md says what each means.
    """

    training_share: Annotated[float, Field(strict=True, ge=1e-3, le=2)] | None = None
    """Part of the best matrix product's rate that those of a training step reach."""
    half_rate_side: Annotated[float, Field(strict=True, ge=0, le=1e5)] | None = None
    """A matrix product whose smallest side is n runs at n / (n + this) of the rate."""
    attention_share: Annotated[float, Field(strict=True, ge=1e-3, le=2)] | None = None
    """Part of the matrix products' rate that fused attention reaches."""
    forward_overhead_us: LatencyUs | None = None
    """Time lost between two operations of the forward pass."""
    collective_efficiency: Efficiency | None = None
    """Part of the bandwidth of the links of a node that collectives over TP reach."""
    backward_exposed_share: Annotated[float, Field(strict=True, ge=0, le=2)] | None = None
    """Part of the TP communication of the backward pass that computation doesn't hide."""
