from __future__ import annotations

from poseidon.inputs.links import Link, LinkOverride, Links


def test_an_override_replaces_only_what_it_gives() -> None:
    link = Link(bandwidth_gbps=200, latency_us=10, shared_by="node")
    assert LinkOverride().applied_to(link) == link
    assert LinkOverride(bandwidth_gbps=400).applied_to(link) == Link(
        bandwidth_gbps=400, latency_us=10, shared_by="node"
    )
    assert LinkOverride(latency_us=0, shared_by="device").applied_to(link) == Link(bandwidth_gbps=200)


def test_the_devices_of_a_node_share_a_link_only_when_it_says_so() -> None:
    assert Link(bandwidth_gbps=200).per_device_gbps(8) == 200
    assert Link(bandwidth_gbps=200, shared_by="node").per_device_gbps(8) == 25


def test_clusters_are_connected_like_nodes_unless_the_file_says_otherwise() -> None:
    links = Links.model_validate({"intra_node": {"bandwidth_gbps": 100}, "inter_node": {"bandwidth_gbps": 10}})
    assert links.cross_cluster == links.inter_node == Link(bandwidth_gbps=10)
