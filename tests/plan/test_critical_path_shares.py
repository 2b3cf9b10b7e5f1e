from __future__ import annotations

import pytest

from poseidon.plan.plan import CriticalPathShares
from poseidon.plan.timing import critical_path_shares
from poseidon.schedule import get_schedule
from poseidon.simulate import simulate, stage_times


@pytest.mark.parametrize(
    ("stages", "window"),
    [
        ((0.1, 0.8, 0.1), (1, 2)),
        ((1.0,), (0, 1)),
        ((0.05, 0.45, 0.45, 0.05), (1, 3)),
        ((0.25, 0.25, 0.25, 0.25), (0, 3)),
        ((0.0, 0.0), (0, 1)),
    ],
)
def test_the_bottleneck_is_the_fewest_stages_with_most_of_the_path(
    stages: tuple[float, ...], window: tuple[int, int]
) -> None:
    assert CriticalPathShares(stages, 0.0, 0.0).bottleneck == window


def test_the_parts_by_hand() -> None:
    """One micro-batch: 1 + 2 (transfer) + 3 + 4 + 5 (transfer) + 6 and an all-reduce of 4: 25 ms."""
    times = stage_times(
        [1.0, 3.0], [6.0, 4.0], send_forward_ms=[2.0, 0.0], send_backward_ms=[0.0, 5.0], all_reduce_ms=[4.0, 0.0]
    )
    shares = critical_path_shares(simulate(get_schedule("1f1b").order(2, 1), times))
    assert shares.stages == (7 / 25, 7 / 25)
    assert shares.transfers == 7 / 25
    assert shares.all_reduce == 4 / 25
