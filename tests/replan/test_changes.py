"""`--lost` and `--added`, and the cluster that they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs import Experiment
from poseidon.replan.added import additions
from poseidon.replan.lost import lost_devices
from poseidon.replan.new_cluster import Wishes, new_experiment, remaining_nodes

NODES = [
    {"accelerator": "fast", "count": 2, "devices": 4},
    {"accelerator": "slow", "count": 2, "devices": 2, "cluster": "cellar"},
]


@pytest.mark.parametrize(
    ("texts", "lost"),
    [
        (["node3"], {(3, 0), (3, 1)}),
        (["0:2", "node3:1"], {(0, 2), (0, 3), (3, 1)}),
        (["node1/0+2, node2/1"], {(1, 0), (1, 2), (2, 1)}),
        ([], set()),
    ],
)
def test_lost_devices(experiment: Callable[..., Experiment], texts: list[str], lost: set[tuple[int, int]]) -> None:
    assert lost_devices(texts, experiment(cluster={"nodes": NODES}).cluster) == lost


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gpu3", "'gpu3' is not a node; accepted: node3 (the fourth node of the cluster file), node3:2 (two of"),
        ("", "'' is not a node"),
        ("node4", "there is no node4; the cluster has node0 to node3, in the order of its file"),
        ("node0:5", "node0 has 4 devices"),
        ("node0:0", "node0 has 4 devices"),
        ("node2/0+2", "node2 has the devices 0 to 1"),
        ("node1,node1:1", "device 3 of node1 is lost twice"),
        ("node1/0+0", "device 0 of node1 is lost twice"),
        ("node0,node1,node2,node3", "no device of the cluster would be left"),
    ],
)
def test_what_cannot_be_lost(experiment: Callable[..., Experiment], text: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        lost_devices([text], experiment(cluster={"nodes": NODES}).cluster)
    assert str(caught.value).startswith("--lost: ")
    assert reason in str(caught.value)


def test_added_nodes_are_like_those_of_their_type(experiment: Callable[..., Experiment]) -> None:
    cluster = experiment(cluster={"nodes": NODES}).cluster
    added = additions(["2xslow,fast:8"], [], cluster)
    assert [(group.accelerator, group.count, group.devices, group.cluster) for group in added.groups] == [
        ("slow", 2, 2, "cellar"),
        ("fast", 1, 8, "fast"),
    ]
    assert added.accelerators == {}


def test_new_types_come_from_files(experiment: Callable[..., Experiment], tmp_path: Path) -> None:
    path = tmp_path / "brand-new.yaml"
    path.write_text("{peak_tflops: 1000, memory_gb: 100}")
    cluster = experiment().cluster
    added = additions(["2xbrand-new:8", "h100-sxm-80gb:4"], [path], cluster)
    assert [(group.accelerator, group.devices) for group in added.groups] == [("brand-new", 8), ("h100-sxm-80gb", 4)]
    assert added.accelerators["brand-new"].peak_tflops == 1000
    assert added.accelerators["h100-sxm-80gb"].memory_gb == 80


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not NxTYPE; accepted: 2xA100 (two nodes like the cluster's A100 nodes)"),
        ("0xfast", "1 to 100,000 nodes with 1 to 1,024 devices each are accepted"),
        ("fast:0", "1 to 100,000 nodes with 1 to 1,024 devices each are accepted"),
        ("2xfast", "nodes of fast have 2 or 4 devices; say how many, e.g. 2xfast:4"),
        ("2xt4", "t4 is new here; say how many, e.g. 2xt4:8"),
        ("2xA9999:8", "'A9999' is no accelerator of the cluster ('fast', 'slow') and no file of configs/accelerators"),
        ("../../../etc/passwd:8", "'../../../etc/passwd' is no accelerator of the cluster"),
        ("..:8", "'..' is no accelerator of the cluster"),
    ],
)
def test_what_cannot_be_added(experiment: Callable[..., Experiment], text: str, reason: str) -> None:
    nodes = [{"accelerator": "fast", "count": 1, "devices": 4}, {"accelerator": "fast", "count": 1, "devices": 2}]
    with pytest.raises(InputError) as caught:
        additions([text], [], experiment(cluster={"nodes": nodes}).cluster)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_accelerator_file_may_not_change_a_known_type(experiment: Callable[..., Experiment], tmp_path: Path) -> None:
    path = tmp_path / "fast.yaml"
    path.write_text("{peak_tflops: 1000, memory_gb: 100}")
    with pytest.raises(InputError, match="--accelerator: the cluster has an accelerator 'fast' already"):
        additions(["fast"], [path], experiment().cluster)


def test_the_new_cluster_keeps_the_order_and_knows_what_was_where(experiment: Callable[..., Experiment]) -> None:
    links = [{"between": ["fast", "cellar"], "bandwidth_gbps": 5.0}]
    old = experiment(cluster={"nodes": NODES, "cluster_links": links})
    added = additions(["fast"], [], old.cluster)
    nodes = remaining_nodes(old, lost_devices(["node0/1", "node2"], old.cluster), added)
    assert [(node.was, node.devices) for node in nodes] == [
        (0, (0, 2, 3)),
        (1, (0, 1, 2, 3)),
        (3, (0, 1)),
        (None, (0, 1, 2, 3)),
    ]
    new = new_experiment(old, nodes, added, Wishes(allow_idle=True, global_batch_size=24))
    assert [(group.accelerator, group.count, group.devices) for group in new.cluster.nodes] == [
        ("fast", 1, 3),
        ("fast", 1, 4),
        ("slow", 1, 2),
        ("fast", 1, 4),
    ]
    assert (new.search.allow_idle, new.training.global_batch_size) == (True, 24)
    assert len(new.cluster.cluster_links) == 1


def test_links_to_a_cluster_that_is_gone_go_with_it(experiment: Callable[..., Experiment]) -> None:
    links = [{"between": ["fast", "cellar"], "bandwidth_gbps": 5.0}]
    old = experiment(cluster={"nodes": NODES, "cluster_links": links})
    nothing = additions([], [], old.cluster)
    nodes = remaining_nodes(old, lost_devices(["node2", "node3"], old.cluster), nothing)
    assert new_experiment(old, nodes, nothing, Wishes()).cluster.cluster_links == ()
