from __future__ import annotations

from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.links import Link
from poseidon.inputs.validation import validate


def cluster_of(data: dict[str, Any]) -> Cluster:
    return validate(Cluster, data, "c.yaml")


def mistakes(data: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        cluster_of(data)
    return [f"{mistake.field}: {mistake.message}" for mistake in caught.value.mistakes]


def test_a_node_group_stands_in_the_cluster_of_its_accelerators_name(cluster_data: dict[str, Any]) -> None:
    cluster = cluster_of(cluster_data)
    assert [group.cluster for group in cluster.nodes] == ["fast", "slow"]
    assert cluster.num_devices == 16


def test_nodes_of_one_type_may_have_different_numbers_of_devices(cluster_data: dict[str, Any]) -> None:
    cluster_data["nodes"] += [
        {"accelerator": "fast", "count": 3, "devices": 2},
        {"accelerator": "slow", "count": 1, "devices": 7},
    ]
    assert cluster_of(cluster_data).num_devices == 16 + 6 + 7


def test_any_accelerator_name_and_many_types_are_accepted(cluster_data: dict[str, Any]) -> None:
    names = ["4090", "A 100 (80 GB)", "昇腾910B", "x.y/z", "true"]
    cluster_data["accelerators"] = {name: {"peak_tflops": 1, "memory_gb": 1} for name in names}
    cluster_data["nodes"] = [{"accelerator": name, "count": 1, "devices": 3} for name in names]
    assert list(cluster_of(cluster_data).accelerators) == names


def test_devices_of_a_node_use_the_intra_node_link_with_overrides(cluster_data: dict[str, Any]) -> None:
    cluster_data["accelerators"]["fast"]["links"] = {"intra_node": {"bandwidth_gbps": 2400}}
    cluster_data["nodes"].append(
        {"accelerator": "fast", "count": 1, "devices": 2, "links": {"intra_node": {"latency_us": 1}}}
    )
    fast, slow, small = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.intra_node_link(fast) == Link(bandwidth_gbps=2400, latency_us=5)
    assert cluster.intra_node_link(slow) == Link(bandwidth_gbps=1400, latency_us=5)
    assert cluster.intra_node_link(small) == Link(bandwidth_gbps=2400, latency_us=1)


def test_nodes_of_one_cluster_use_the_inter_node_link_and_others_the_cross_cluster_link(
    cluster_data: dict[str, Any],
) -> None:
    fast, slow = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.link_between(slow, slow) == Link(bandwidth_gbps=200, latency_us=10)
    assert cluster.link_between(fast, slow) == Link(bandwidth_gbps=75, latency_us=20)
    cluster_data["nodes"][1]["cluster"] = "fast"
    fast, slow = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.link_between(fast, slow) == Link(bandwidth_gbps=200, latency_us=10)


def test_the_slower_side_of_a_link_decides(cluster_data: dict[str, Any]) -> None:
    cluster_data["accelerators"]["fast"]["links"] = {"cross_cluster": {"bandwidth_gbps": 400, "latency_us": 30}}
    cluster_data["nodes"][1]["links"] = {"cross_cluster": {"bandwidth_gbps": 50}}
    fast, slow = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.link_between(fast, slow) == Link(bandwidth_gbps=50, latency_us=30)
    assert cluster.link_between(slow, fast) == cluster.link_between(fast, slow)


def test_a_link_that_a_node_shares_is_slower_than_a_narrower_one_of_each_device(cluster_data: dict[str, Any]) -> None:
    cluster_data["accelerators"]["fast"]["links"] = {"cross_cluster": {"bandwidth_gbps": 400, "shared_by": "node"}}
    fast, slow = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.link_between(slow, fast) == Link(bandwidth_gbps=400, latency_us=20, shared_by="node")


def test_a_pair_of_clusters_may_have_its_own_link(cluster_data: dict[str, Any]) -> None:
    cluster_data["accelerators"]["third"] = {"peak_tflops": 1, "memory_gb": 1}
    cluster_data["nodes"].append({"accelerator": "third", "count": 1, "devices": 1})
    cluster_data["cluster_links"] = [{"between": ["slow", "fast"], "bandwidth_gbps": 10}]
    fast, slow, third = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.link_between(fast, slow) == Link(bandwidth_gbps=10, latency_us=20)
    assert cluster.link_between(fast, third) == Link(bandwidth_gbps=75, latency_us=20)


def test_wrong_cluster_pairs_are_refused(cluster_data: dict[str, Any]) -> None:
    cluster_data["cluster_links"] = [
        {"between": ["fast", "slow"], "latency_us": 1},
        {"between": ["slow", "fast"], "latency_us": 2},
        {"between": ["fast", "fast"], "latency_us": 3},
        {"between": ["fast", "moon"], "latency_us": 4},
        {"between": ["fast"], "latency_us": 5},
    ]
    assert mistakes(cluster_data) == [
        "cluster_links[1].between: 'slow' and 'fast' are given twice",
        "cluster_links[2].between: names one cluster twice; links inside a cluster are `links.inter_node`",
        "cluster_links[3].between: no node group stands in a cluster 'moon'; the clusters are 'fast', 'slow'",
        "cluster_links[4].between[1]: is missing",
    ]


def test_vendors_talk_among_themselves_and_where_communication_says_so(cluster_data: dict[str, Any]) -> None:
    fast, slow = (cluster := cluster_of(cluster_data)).nodes
    assert cluster.can_communicate(fast, slow), "no vendor is stated"
    cluster_data["accelerators"]["fast"]["vendor"] = "nvidia"
    assert (cluster := cluster_of(cluster_data)).can_communicate(*cluster.nodes), "one vendor is not stated"
    cluster_data["accelerators"]["slow"]["vendor"] = "amd"
    assert not (cluster := cluster_of(cluster_data)).can_communicate(*cluster.nodes)
    assert cluster.can_communicate(cluster.nodes[0], cluster.nodes[0])
    cluster_data["communication"] = [["amd", "nvidia"]]
    assert (cluster := cluster_of(cluster_data)).can_communicate(*cluster.nodes)


def test_communication_names_vendors_that_exist(cluster_data: dict[str, Any]) -> None:
    cluster_data["communication"] = [["nvidia"]]
    assert mistakes(cluster_data) == [
        "communication[0][0]: no accelerator has the vendor 'nvidia'; none of them states a vendor"
    ]
    cluster_data["accelerators"]["fast"]["vendor"] = "amd"
    assert mistakes(cluster_data) == ["communication[0][0]: no accelerator has the vendor 'nvidia'; they have 'amd'"]


def test_more_than_a_million_devices_are_refused(cluster_data: dict[str, Any]) -> None:
    cluster_data["nodes"][0] |= {"count": 100_000, "devices": 1024}
    assert mistakes(cluster_data) == [
        "nodes: the nodes have 102400008 devices together; at most 1,000,000 are accepted"
    ]


def test_a_cluster_without_nodes_or_accelerators_is_refused(cluster_data: dict[str, Any]) -> None:
    cluster_data |= {"nodes": [], "accelerators": {}}
    assert mistakes(cluster_data) == [
        "accelerators: has 0 entries: at least 1 is accepted",
        "nodes: has 0 entries: at least 1 is accepted",
    ]
