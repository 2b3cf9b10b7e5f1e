from __future__ import annotations

import pytest

from poseidon.cost.placement import AlikeNodes, Placement
from poseidon.inputs.cluster import Cluster, NodeGroup
from poseidon.inputs.validation import validate
from poseidon.plan.devices import idle_devices, stage_devices
from poseidon.plan.plan import NodeDevices


@pytest.fixture
def cluster() -> Cluster:
    """Nodes 0 and 1: four devices of type a; node 2: eight of type b."""
    link = {"bandwidth_gbps": 100.0}
    data = {
        "name": "c",
        "accelerators": {name: {"peak_tflops": 100.0, "memory_gb": 10.0} for name in "ab"},
        "nodes": [{"accelerator": "a", "count": 2, "devices": 4}, {"accelerator": "b", "count": 1, "devices": 8}],
        "links": {"intra_node": link, "inter_node": link},
    }
    return validate(Cluster, data, "cluster")


def placement(cluster: Cluster, group: int, dp: int, tp: int, stages_per_node: int = 1) -> Placement:
    node_group: NodeGroup = cluster.nodes[group]
    nodes = (0, 1) if group == 0 else (2,)
    return Placement("k", node_group.accelerator, dp, tp, 2, stages_per_node, (AlikeNodes(node_group, nodes),))


def test_stages_of_one_kind_fill_its_nodes_in_pipeline_order(cluster: Cluster) -> None:
    half = placement(cluster, 0, dp=1, tp=2, stages_per_node=2)
    assert stage_devices([half] * 4, "node") == (
        (NodeDevices(0, (0, 1)),),
        (NodeDevices(0, (2, 3)),),
        (NodeDevices(1, (0, 1)),),
        (NodeDevices(1, (2, 3)),),
    )


def test_kinds_take_their_own_nodes(cluster: Cluster) -> None:
    a, b = placement(cluster, 0, dp=2, tp=2), placement(cluster, 1, dp=2, tp=2, stages_per_node=2)
    assert stage_devices([a, b, b, a], "node") == (
        (NodeDevices(0, (0, 1, 2, 3)),),
        (NodeDevices(2, (0, 1, 2, 3)),),
        (NodeDevices(2, (4, 5, 6, 7)),),
        (NodeDevices(1, (0, 1, 2, 3)),),
    )


def test_a_stage_may_cover_whole_nodes(cluster: Cluster) -> None:
    whole = placement(cluster, 0, dp=2, tp=4)
    assert stage_devices([whole], "node") == ((NodeDevices(0, (0, 1, 2, 3)), NodeDevices(1, (0, 1, 2, 3))),)


def test_by_stage_a_kind_comes_back_to_its_node(cluster: Cluster) -> None:
    half, b = placement(cluster, 0, dp=1, tp=2, stages_per_node=2), placement(cluster, 1, dp=1, tp=8)
    devices = stage_devices([half, b, half], "stage")
    assert devices[2] == (NodeDevices(0, (2, 3)),)


def test_by_node_a_node_that_was_begun_is_left_for_good(cluster: Cluster) -> None:
    half, b = placement(cluster, 0, dp=1, tp=2, stages_per_node=2), placement(cluster, 1, dp=1, tp=8)
    devices = stage_devices([half, b, half], "node")
    assert devices[2] == (NodeDevices(1, (0, 1)),)
    assert idle_devices(cluster, devices) == (NodeDevices(0, (2, 3)), NodeDevices(1, (2, 3)))


def test_kinds_that_share_devices_take_turns(cluster: Cluster) -> None:
    pair, single = placement(cluster, 0, dp=1, tp=2, stages_per_node=2), placement(cluster, 0, 1, 1, 4)
    assert stage_devices([single, single, pair, pair], "node") == (
        (NodeDevices(0, (0,)),),
        (NodeDevices(0, (1,)),),
        (NodeDevices(0, (2, 3)),),
        (NodeDevices(1, (0, 1)),),
    )
