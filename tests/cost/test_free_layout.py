from __future__ import annotations

from collections.abc import Callable

import pytest

from poseidon.cost import costs, outer_choices
from poseidon.cost.free_layout import _exact_counts
from poseidon.inputs.experiment import Experiment
from poseidon.profile import Profile

Make = Callable[..., Experiment]


def test_idle_devices_allow_every_smaller_number_of_stages(make_experiment: Make) -> None:
    experiment = make_experiment(search={"allow_idle": True, "fixed_tp": 1, "fixed_dp": 1})

    assert [choice.num_stages for choice in outer_choices(experiment).choices] == [1, 2, 3, 4]
    assert outer_choices(experiment).choices[2].name == "dp1 tp1 pp3 mbs1 1f1b"


def test_idle_devices_make_room_for_odd_nodes(make_experiment: Make) -> None:
    """One stage of 4 devices fits on a node of 6 and leaves 2 of them idle; the other node is too small for it."""
    nodes = [{"accelerator": "fast", "count": 1, "devices": 6}, {"accelerator": "slow", "count": 1, "devices": 2}]
    experiment = make_experiment(cluster={"nodes": nodes}, search={"allow_idle": True, "fixed_tp": 2, "fixed_dp": 2})

    (choice,) = outer_choices(experiment).choices

    assert [(kind.name, kind.num_stages, kind.stages_per_node) for kind in choice.layout.placements] == [
        ("fast/tp2", 1, 1)
    ]


def test_kinds_of_one_pool_share_its_devices(make_experiment: Make, profile: Profile) -> None:
    experiment = make_experiment(search={"tp": "per-stage", "fixed_dp": 1})

    problems = {problem.num_stages: problem for _, problem in costs(experiment, profile)}

    assert sorted(problems) == [2, 3, 4]  # two whole nodes to four single devices
    kinds = problems[3].kinds
    assert [(kind.name, kind.pool, kind.devices, kind.stages) for kind in kinds] == [
        ("fast/tp1", "fast", 1, 2),
        ("fast/tp2", "fast", 2, 1),
        ("slow/tp1", "slow", 1, 2),
        ("slow/tp2", "slow", 2, 1),
    ]
    assert [(pool.name, pool.devices, pool.devices_per_node) for pool in problems[3].pools] == [
        ("fast", 2, 2),
        ("slow", 2, 2),
    ]


def test_per_type_degrees_with_idle_devices_keep_one_degree_a_type(make_experiment: Make) -> None:
    experiment = make_experiment(search={"tp": "per-type", "allow_idle": True, "fixed_dp": 1})

    for choice in outer_choices(experiment).choices:
        assert not choice.layout.shares_devices


@pytest.mark.parametrize(
    ("devices", "sizes", "counts"),
    [(4, [1, 2, 4], {1, 2, 3, 4}), (6, [4], set()), (8, [2, 8], {1, 4}), (0, [2], {0}), (5, [], set())],
)
def test_numbers_of_stages_that_use_every_device(devices: int, sizes: list[int], counts: set[int]) -> None:
    assert _exact_counts(devices, sizes, most=10) == counts


def test_a_fixed_number_of_stages_is_honoured_with_idle_devices(make_experiment: Make) -> None:
    experiment = make_experiment(search={"allow_idle": True, "fixed_pp": 3})

    assert {choice.num_stages for choice in outer_choices(experiment).choices} == {3}
