from __future__ import annotations

import pytest

from poseidon.inputs.links import Link
from poseidon.profile.collectives import all_reduce_ms
from poseidon.profile.measure.cells import ComputeCell
from poseidon.profile.measure.ring import Ring, communication_ms, fitted_ring

LINK = Link(bandwidth_gbps=80.0, latency_us=20.0)
SIZES = (65_536, 262_144, 1_048_576, 4_194_304)


def test_a_ring_is_found_again_and_carried_to_more_ranks() -> None:
    ring = fitted_ring([(size, all_reduce_ms(size, 2, LINK)) for size in SIZES], num_ranks=2)
    assert ring.latency_ms == pytest.approx(0.02)
    assert ring.bytes_per_ms == pytest.approx(1e7)
    assert ring.all_reduce_ms(1e6, 8) == pytest.approx(all_reduce_ms(1e6, 8, LINK))


def test_a_falling_line_has_no_negative_latency_or_bandwidth() -> None:
    ring = fitted_ring([(65_536, 2.0), (262_144, 1.0)], num_ranks=2)
    assert ring.latency_ms > 0
    assert ring.bytes_per_ms > 0
    steep = fitted_ring([(65_536, 1.0), (262_144, 100.0)], num_ranks=2)
    assert steep.latency_ms == 0.0


def test_communication_of_a_cell() -> None:
    ring = Ring(2, latency_ms=0.5, bytes_per_ms=1e6)
    whole = ring.all_reduce_ms(8e6, 4)
    assert whole == 2 * 3 * (0.5 + 2)
    none, full = ComputeCell("dense", 4, 1), ComputeCell("dense", 4, 1, "full")
    assert communication_ms(none, 8e6, ring, True) == (2 * whole, whole)
    assert communication_ms(full, 8e6, ring, True) == (2 * whole, 3 * whole)
    assert communication_ms(ComputeCell("embedding", 4, 1), 8e6, ring, True) == (whole / 2, whole / 2)
    assert communication_ms(ComputeCell("embedding", 4, 1), 8e6, ring, False) == (whole, 0)
    assert communication_ms(ComputeCell("head", 4, 1), 8e6, ring, False) == (0, whole)
