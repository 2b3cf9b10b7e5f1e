"""Faster accelerators and links where times were measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from poseidon.plan.plan import Plan
from poseidon.profile import Profile, load_profile
from poseidon.profile.profile import MeasuredAllReduce, MeasuredTransfer, Row
from poseidon.report.changes import Change
from poseidon.report.measured_change import changed_profile


@pytest.fixture
def profile(make_plan: Callable[..., Plan]) -> Profile:
    """The example's rows, and a message of each class."""
    return replace(
        load_profile(make_plan().experiment),
        transfers=(
            MeasuredTransfer("fast", "slow", "cross_cluster", 1e6, 2.2),
            MeasuredTransfer("fast", "fast", "intra_node", 1e6, 1.1),
        ),
        all_reduce=(MeasuredAllReduce("fast", 1, 2, "intra_node", 1e6, 3.3),),
    )


def times(row: Row) -> tuple[float, float, float]:
    return row.forward_ms, row.backward_ms, row.update_ms


def test_all_rows_of_a_faster_accelerator_take_less_time_and_no_others(profile: Profile) -> None:
    faster = changed_profile(profile, Change("accelerator", "fast", "faster"))
    before = {**profile.layers, **profile.embedding, **profile.head}
    after = {**faster.layers, **faster.embedding, **faster.head}
    assert before.keys() == after.keys()
    assert len({str(key).split(",")[0] for key in before}) == 2
    for key, row in before.items():
        factor = 1.1 if "accelerator fast" in str(key) else 1.0
        assert times(after[key]) == pytest.approx([time / factor for time in times(row)], rel=1e-12)
        assert after[key].weight_bytes == row.weight_bytes
        assert after[key].activation_bytes == row.activation_bytes
    assert (faster.transfers, faster.all_reduce) == (profile.transfers, profile.all_reduce)


def test_only_messages_of_the_class_get_faster(profile: Profile) -> None:
    faster = changed_profile(profile, Change("link", "intra_node", "faster"))
    assert [row.ms for row in faster.transfers] == pytest.approx([2.2, 1.0])
    assert [row.ms for row in faster.all_reduce] == pytest.approx([3.0])
    assert faster.layers == profile.layers


def test_one_more_node_changes_no_row(profile: Profile) -> None:
    assert changed_profile(profile, Change("node", "fast", "more")) == profile
