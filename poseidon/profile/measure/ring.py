"""All-reduce times of more ranks than were measured, from those of fewer: a ring's latency and bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.profile.analytic import REGIONS_PER_LAYER
from poseidon.profile.calibration import DEFAULT_CALIBRATION
from poseidon.profile.measure.cells import ComputeCell


@dataclass(frozen=True)
class Ring:
    """What measured all-reduces say about the link: `latency_ms` a step, `bytes_per_ms` in one direction."""

    num_ranks: int
    latency_ms: float
    bytes_per_ms: float

    def all_reduce_ms(self, num_bytes: float, ranks: int) -> float:
        """2 (n - 1) steps of bytes / n: poseidon/profile/collectives.py, with fitted constants."""
        return 2 * (ranks - 1) * (self.latency_ms + num_bytes / ranks / self.bytes_per_ms)


def fitted_ring(points: Sequence[tuple[int, float]], num_ranks: int) -> Ring:
    """The line ms = a + c x bytes through measured all-reduces over `num_ranks`, by least squares of relative errors.

    A negative latency is taken as none. At least two sizes.
    """
    weights = [1 / ms**2 for _, ms in points]
    total = sum(weights)
    mean_bytes = sum(weight * size for weight, (size, _) in zip(weights, points, strict=True)) / total
    mean_ms = sum(weight * ms for weight, (_, ms) in zip(weights, points, strict=True)) / total
    both = zip(weights, points, strict=True)
    covariance = sum(weight * (size - mean_bytes) * (ms - mean_ms) for weight, (size, ms) in both)
    variance = sum(weight * (size - mean_bytes) ** 2 for weight, (size, _) in zip(weights, points, strict=True))
    slope = max(covariance / variance, 1e-18)
    start_ms = max(0.0, mean_ms - slope * mean_bytes)
    steps = 2 * (num_ranks - 1)
    return Ring(num_ranks, start_ms / steps, steps / num_ranks / slope)


def communication_ms(
    cell: ComputeCell, stream_bytes: float, ring: Ring, sequence_parallel: bool
) -> tuple[float, float]:
    """TP communication of a cell's forward and backward pass, as the analytic profile counts it (docs/profile.md)."""
    whole = ring.all_reduce_ms(stream_bytes, cell.tp)
    half = whole / 2
    if cell.part == "embedding":
        return (half, half) if sequence_parallel else (whole, 0.0)
    if cell.part == "head":
        return (half, half) if sequence_parallel else (0.0, whole)
    forward = REGIONS_PER_LAYER * whole
    backward = DEFAULT_CALIBRATION.backward_exposed_share * forward
    return forward, backward + (forward if cell.recompute == "full" else 0.0)
