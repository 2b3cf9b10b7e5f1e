"""Eq. 1 against a plain twin, and against sums done by hand."""

from __future__ import annotations

import random

import pytest

from poseidon.simulate import StageTimes, stage_times
from poseidon.simulate.static_formula import static_time_ms


def plain_static_ms(times: StageTimes, num_micro_batches: int) -> float:
    """Eq. 1 in plain Python, stage by stage."""
    stages, chunks = times.num_stages, times.num_chunks
    per_stage = []
    for s in range(stages):
        total = 0.0
        for c in range(chunks):
            total += float(times.forward_ms[s, c]) + float(times.backward_ms[s, c])
            if s < stages - 1:
                total += float(times.send_forward_ms[s]) + float(times.send_backward_ms[s + 1])
            elif c < chunks - 1:
                total += float(times.send_forward_ms[s]) + float(times.send_backward_ms[0])
        per_stage.append(total)
    slowest = max(per_stage)
    return sum(per_stage) + (num_micro_batches - 1) * slowest + max(map(float, times.all_reduce_ms))


def random_times(seed: int) -> StageTimes:
    draw = random.Random(seed)
    stages, chunks = draw.randint(1, 6), draw.randint(1, 3)

    def row() -> list[float]:
        return [draw.uniform(0, 5) for _ in range(stages)]

    def rows() -> list[list[float]]:
        return [[draw.uniform(0, 9) for _ in range(chunks)] for _ in range(stages)]

    return stage_times(rows(), rows(), send_forward_ms=row(), send_backward_ms=row(), all_reduce_ms=row())


@pytest.mark.parametrize("seed", range(100))
def test_it_equals_its_plain_twin(seed: int) -> None:
    times = random_times(seed)
    assert static_time_ms(times, 1 + seed % 9) == pytest.approx(plain_static_ms(times, 1 + seed % 9), rel=1e-12)


def test_two_stages_by_hand() -> None:
    times = stage_times([20, 10], [40, 20], send_forward_ms=[1, 9], send_backward_ms=[9, 2], all_reduce_ms=[5, 7])
    # t = 20 + 40 + 1 + 2 = 63 and 10 + 20 = 30; nothing is sent after the last stage.
    assert static_time_ms(times, 3) == 63 + 30 + 2 * 63 + 7


def test_it_adds_transfers_that_the_dag_hides() -> None:
    """The paper's Figure 1: two stages, two micro-batches; the estimate is above the truth."""
    from poseidon.schedule import get_schedule
    from poseidon.simulate import simulate

    times = stage_times([10, 10], [20, 20], send_forward_ms=[4, 0], send_backward_ms=[0, 4], all_reduce_ms=[0, 0])
    assert static_time_ms(times, 2) > simulate(get_schedule("1f1b").order(2, 2, 1), times).iteration_time_ms
