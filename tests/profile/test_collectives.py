from __future__ import annotations

import pytest

from poseidon.inputs.links import Link
from poseidon.profile.collectives import all_gather_ms, all_reduce_ms, bytes_per_ms, transfer_ms

LINK = Link(bandwidth_gbps=80.0, latency_us=10.0)  # 1e7 bytes a millisecond


def test_a_transfer_takes_latency_plus_size_over_bandwidth() -> None:
    assert transfer_ms(2e7, LINK) == pytest.approx(2.01)


def test_a_ring_all_reduce_follows_the_contract() -> None:
    """2 (D - 1) / D x bytes / bandwidth + 2 (D - 1) x latency."""
    assert all_reduce_ms(4e7, 4, LINK) == pytest.approx(2 * 3 / 4 * 4 + 2 * 3 * 0.01)


def test_an_all_gather_is_half_of_an_all_reduce() -> None:
    assert 2 * all_gather_ms(3e6, 5, LINK) == all_reduce_ms(3e6, 5, LINK)


def test_one_rank_has_nothing_to_reduce() -> None:
    assert all_reduce_ms(1e9, 1, LINK) == 0.0


def test_senders_of_a_node_share_a_link_of_the_node_only() -> None:
    shared = LINK.model_copy(update={"shared_by": "node"})

    assert bytes_per_ms(LINK, 8) == pytest.approx(1e7)
    assert bytes_per_ms(shared, 8) == pytest.approx(1e7 / 8)
