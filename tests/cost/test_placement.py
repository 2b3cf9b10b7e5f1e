from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.placement import Placement, alike_nodes, fit_refusal, place
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.experiment import Experiment


def cluster_of(*nodes: dict[str, Any]) -> Cluster:
    names = {node["accelerator"] for node in nodes}
    return Cluster.model_validate(
        {
            "name": "cluster",
            "accelerators": {name: {"peak_tflops": 100.0, "memory_gb": 16.0} for name in names},
            "nodes": list(nodes),
            "links": {"intra_node": {"bandwidth_gbps": 800.0}, "inter_node": {"bandwidth_gbps": 80.0}},
        }
    )


def placed(cluster: Cluster, dp: int, tp: int) -> tuple[Placement, ...]:
    placements = place(alike_nodes(cluster), dp, dict.fromkeys(cluster.accelerators, tp))
    assert not isinstance(placements, str), placements
    return placements


def test_a_node_holds_several_stages_when_they_are_small() -> None:
    (kind,) = placed(cluster_of({"accelerator": "A", "count": 2, "devices": 8}), dp=2, tp=2)

    assert (kind.name, kind.num_stages, kind.stages_per_node) == ("A/tp2", 4, 2)
    assert [kind.nodes_of_stage(stage) for stage in range(4)] == [(0,), (0,), (1,), (1,)]


def test_a_stage_may_cover_whole_nodes() -> None:
    (kind,) = placed(cluster_of({"accelerator": "A", "count": 4, "devices": 8}), dp=4, tp=4)

    assert (kind.num_stages, kind.stages_per_node, kind.spans_nodes) == (2, 1, True)
    assert [kind.nodes_of_stage(stage) for stage in range(2)] == [(0, 1), (2, 3)]


def test_groups_that_nothing_tells_apart_are_one_kind() -> None:
    group = {"accelerator": "A", "count": 1, "devices": 4}

    (kind,) = placed(cluster_of(group, {"accelerator": "B", "count": 1, "devices": 4}, group), dp=1, tp=4)[:1]

    assert kind.parts[0].nodes == (0, 2)
    assert kind.num_stages == 2


@pytest.mark.parametrize(
    "other",
    [
        {"devices": 4},
        {"devices": 8, "links": {"intra_node": {"bandwidth_gbps": 100.0}}},
        {"devices": 8, "cluster": "elsewhere"},
    ],
)
def test_nodes_of_one_type_that_differ_are_kinds_of_their_own(other: dict[str, Any]) -> None:
    cluster = cluster_of({"accelerator": "A", "count": 1, "devices": 8}, {"accelerator": "A", "count": 2} | other)

    kinds = placed(cluster, dp=2, tp=2)

    assert [kind.name for kind in kinds] == ["A.0/tp2", "A.1/tp2"]
    assert [kind.stages_per_node for kind in kinds] == [2, other["devices"] // 4]


def test_stages_that_span_nodes_may_take_nodes_of_different_sizes() -> None:
    cluster = cluster_of(
        {"accelerator": "A", "count": 2, "devices": 4},
        {"accelerator": "A", "count": 1, "devices": 8},
    )

    (kind,) = placed(cluster, dp=4, tp=4)

    assert kind.name == "A/tp4"
    assert kind.nodes_of_stage(0) == (2, 0, 1)  # the larger node first


def test_a_stage_never_spans_two_clusters() -> None:
    cluster = cluster_of(
        {"accelerator": "A", "count": 1, "devices": 8, "cluster": "x"},
        {"accelerator": "A", "count": 1, "devices": 8, "cluster": "y"},
    )

    assert place(alike_nodes(cluster), 2, {"A": 8}) == "the 8 devices of A are not a multiple of DP 2 x TP 8 = 16"


@pytest.mark.parametrize(
    ("devices", "dp", "tp", "reason"),
    [
        (8, 1, 3, "TP 3 does not divide the 8 devices of a node of A"),
        (8, 3, 2, "DP 3 x TP 2 = 6 neither divides nor is a multiple of the 8 devices of a node of A"),
        (6, 3, 2, None),
        (6, 4, 3, None),
    ],
)
def test_stages_must_fit_the_nodes(devices: int, dp: int, tp: int, reason: str | None) -> None:
    assert fit_refusal(devices, dp, tp, "A") == reason


def test_a_stage_may_not_split_a_node() -> None:
    """Nodes are filled from the largest: 12 + 8 leaves 4 of 24 devices, and the next node has 8."""
    cluster = cluster_of(
        {"accelerator": "A", "count": 1, "devices": 12},
        {"accelerator": "A", "count": 3, "devices": 8},
        {"accelerator": "A", "count": 2, "devices": 6},
    )

    assert place(alike_nodes(cluster), 24, {"A": 1}) == "stages of DP 24 x TP 1 = 24 devices would split a node of A"


@given(
    groups=st.lists(
        st.tuples(st.sampled_from(["A", "B"]), st.integers(1, 4), st.sampled_from([1, 2, 4, 6, 8])),
        min_size=1,
        max_size=4,
    ),
    dp=st.sampled_from([1, 2, 3, 4, 8]),
    tp=st.sampled_from([1, 2, 4]),
)
def test_every_device_is_used_exactly_once(groups: list[tuple[str, int, int]], dp: int, tp: int) -> None:
    cluster = cluster_of(*({"accelerator": name, "count": count, "devices": size} for name, count, size in groups))
    placements = place(alike_nodes(cluster), dp, dict.fromkeys(cluster.accelerators, tp))
    if isinstance(placements, str):
        return
    sizes = [size for _, count, size in groups for _ in range(count)]

    used = [0] * len(sizes)
    for kind in placements:
        for stage in range(kind.num_stages):
            nodes = kind.nodes_of_stage(stage)
            for node in nodes:
                used[node] += min(sizes[node], kind.devices_per_stage)
            assert sum(min(sizes[node], kind.devices_per_stage) for node in nodes) == kind.devices_per_stage

    assert used == sizes


def test_node_numbers_follow_the_file(make_experiment: Callable[..., Experiment]) -> None:
    cluster = make_experiment().cluster

    assert [pool.nodes for pool in alike_nodes(cluster)] == [(0,), (1,)]
