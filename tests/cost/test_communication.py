from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from poseidon.cost import OuterChoice
from poseidon.cost.communication import FORBIDDEN, Communication
from poseidon.cost.measured import interpolated_ms
from poseidon.cost.placement import Placement, alike_nodes, place
from poseidon.inputs.experiment import Experiment
from poseidon.profile import MeasuredAllReduce, MeasuredTransfer, Profile

Make = Callable[..., Experiment]
ACTIVATION = 2e7
"""2 ms between nodes, 0.2 ms inside one."""


def kinds(experiment: Experiment, dp: int, tp: int) -> tuple[Placement, ...]:
    placed = place(alike_nodes(experiment.cluster), dp, dict.fromkeys(experiment.cluster.accelerators, tp))
    assert not isinstance(placed, str)
    return placed


def communication(experiment: Experiment, profile: Profile) -> Communication:
    return Communication(experiment.cluster, profile, experiment.training.sequence_parallel)


def test_an_activation_takes_size_over_bandwidth(experiment: Experiment, profile: Profile) -> None:
    fast, slow = kinds(experiment, 1, 1)
    cost = communication(experiment, profile)

    assert cost.inter_node_ms(fast, slow, ACTIVATION) == pytest.approx(2.0)
    assert cost.intra_node_ms(fast, fast, ACTIVATION) == pytest.approx(0.2)
    assert cost.intra_node_ms(fast, slow, ACTIVATION) == pytest.approx(2.0)  # never on one node


def test_tp_ranks_send_their_parts_of_the_sequence(make_experiment: Make, profile: Profile) -> None:
    parallel, whole = make_experiment(), make_experiment(training={"sequence_parallel": False})
    fast, slow = kinds(parallel, 1, 2)

    assert communication(parallel, profile).inter_node_ms(fast, slow, ACTIVATION) == pytest.approx(1.0)
    assert communication(whole, profile).inter_node_ms(fast, slow, ACTIVATION) == pytest.approx(2.0)


def test_between_unequal_tp_degrees_the_side_with_fewer_devices_decides(
    make_experiment: Make, profile: Profile
) -> None:
    experiment = make_experiment()
    one, two = kinds(experiment, 1, 1)[0], kinds(experiment, 1, 2)[1]
    cost = communication(experiment, profile)

    assert cost.inter_node_ms(one, two, ACTIVATION) == cost.inter_node_ms(two, one, ACTIVATION) == pytest.approx(2.0)


def test_clusters_are_joined_by_their_own_link(make_experiment: Make, profile: Profile) -> None:
    nodes = [{"accelerator": name, "count": 1, "devices": 2, "cluster": name} for name in ("fast", "slow")]
    experiment = make_experiment(cluster={"nodes": nodes})
    fast, slow = kinds(experiment, 1, 1)

    assert communication(experiment, profile).inter_node_ms(fast, slow, ACTIVATION) == pytest.approx(20.0)


def test_a_link_of_the_node_is_shared_by_the_devices_that_send(make_experiment: Make, profile: Profile) -> None:
    """DP 2: both devices of the node send an activation at the same time."""
    links = {"intra_node": {"bandwidth_gbps": 800.0}, "inter_node": {"bandwidth_gbps": 80.0, "shared_by": "node"}}
    experiment = make_experiment(cluster={"links": links})
    cost = communication(experiment, profile)

    assert cost.inter_node_ms(*kinds(experiment, 1, 1), ACTIVATION) == pytest.approx(2.0)
    assert cost.inter_node_ms(*kinds(experiment, 2, 1), ACTIVATION) == pytest.approx(4.0)
    assert cost.inter_node_ms(*kinds(experiment, 1, 2), ACTIVATION) == pytest.approx(2.0)  # two halves


def test_latency_is_paid_once_a_message(make_experiment: Make, profile: Profile) -> None:
    links = {"intra_node": {"bandwidth_gbps": 800.0}, "inter_node": {"bandwidth_gbps": 80.0, "latency_us": 250.0}}
    experiment = make_experiment(cluster={"links": links})

    time = communication(experiment, profile).inter_node_ms(*kinds(experiment, 1, 1), ACTIVATION)

    assert time == pytest.approx(2.25)


def test_vendors_that_cannot_talk_are_never_neighbours(make_experiment: Make, profile: Profile) -> None:
    accelerators: dict[str, dict[str, Any]] = {
        "fast": {"peak_tflops": 200.0, "memory_gb": 10.0, "vendor": "a"},
        "slow": {"peak_tflops": 100.0, "memory_gb": 5.0, "vendor": "b"},
    }
    search = {"allow_idle": True}
    apart = make_experiment(cluster={"accelerators": accelerators}, search=search)
    joined = make_experiment(cluster={"accelerators": accelerators, "communication": [["a", "b"]]}, search=search)

    assert communication(apart, profile).inter_node_ms(*kinds(apart, 1, 1), ACTIVATION) == FORBIDDEN
    assert communication(joined, profile).inter_node_ms(*kinds(joined, 1, 1), ACTIVATION) == pytest.approx(2.0)


def test_gradients_are_reduced_inside_the_node_when_the_stage_fits(experiment: Experiment, profile: Profile) -> None:
    """2 (D - 1) / D x 4e8 bytes / 1e8 bytes a ms."""
    fast = kinds(experiment, 2, 1)[0]

    assert communication(experiment, profile).all_reduce_ms(fast, 4e8) == pytest.approx(4.0)
    assert communication(experiment, profile).all_reduce_ms(kinds(experiment, 1, 2)[0], 4e8) == 0.0


def test_gradients_cross_nodes_at_the_slower_link(make_experiment: Make, profile: Profile) -> None:
    """D = 4 on two nodes of two: 2 x 3/4 x 4e8 bytes at 1e7 bytes a ms, and 6 steps of latency."""
    links = {"intra_node": {"bandwidth_gbps": 800.0}, "inter_node": {"bandwidth_gbps": 80.0, "latency_us": 1000.0}}
    nodes = [{"accelerator": "fast", "count": 2, "devices": 2}]
    experiment = make_experiment(cluster={"nodes": nodes, "links": links})
    (fast,) = kinds(experiment, 4, 1)

    assert communication(experiment, profile).all_reduce_ms(fast, 4e8) == pytest.approx(60.0 + 6.0)


def test_rings_of_the_tp_ranks_share_a_node_s_network(make_experiment: Make, profile: Profile) -> None:
    links = {"intra_node": {"bandwidth_gbps": 800.0}, "inter_node": {"bandwidth_gbps": 80.0, "shared_by": "node"}}
    nodes = [{"accelerator": "fast", "count": 2, "devices": 2}]
    experiment = make_experiment(cluster={"nodes": nodes, "links": links})

    (one_ring,), (two_rings,) = kinds(experiment, 4, 1), kinds(experiment, 2, 2)

    assert communication(experiment, profile).all_reduce_ms(one_ring, 4e8) == pytest.approx(60.0)
    assert communication(experiment, profile).all_reduce_ms(two_rings, 4e8) == pytest.approx(80.0)


def test_measured_times_go_before_the_formulas(
    experiment: Experiment, profile: Profile, choice_of: Callable[..., OuterChoice]
) -> None:
    measured = replace(
        profile,
        transfers=(
            MeasuredTransfer("fast", "slow", "inter_node", 1e7, 3.0),
            MeasuredTransfer("fast", "slow", "inter_node", 3e7, 5.0),
        ),
        all_reduce=(MeasuredAllReduce("fast", 1, 2, "intra_node", 1e8, 7.0),),
    )
    cost = communication(experiment, measured)
    fast, slow = choice_of("dp2 tp1 mbs1 1f1b").layout.placements

    assert cost.inter_node_ms(fast, slow, ACTIVATION) == pytest.approx(4.0)
    assert cost.inter_node_ms(slow, fast, ACTIVATION) == pytest.approx(2.0)  # not measured
    assert cost.all_reduce_ms(fast, 2e8) == pytest.approx(14.0)
    assert cost.all_reduce_ms(slow, 2e8) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("num_bytes", "expected"), [(1.0, 10.0), (2.0, 20.0), (3.0, 25.0), (4.0, 30.0), (6.0, 40.0), (0.0, 0.0)]
)
def test_measured_points_are_joined_by_straight_lines(num_bytes: float, expected: float) -> None:
    assert interpolated_ms([(1.0, 10.0), (2.0, 20.0), (4.0, 30.0)], num_bytes) == pytest.approx(expected)


def test_a_single_point_is_scaled() -> None:
    assert interpolated_ms([(2.0, 10.0)], 5.0) == pytest.approx(25.0)
