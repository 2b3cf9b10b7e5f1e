from __future__ import annotations

import math
import random

import pytest

from poseidon.plan.replay import PlainTimes, replayed_time_ms
from poseidon.schedule import Order, get_schedule, parse_operation
from poseidon.simulate import simulate, stage_times


@pytest.mark.parametrize("seed", range(40))
def test_the_replay_equals_the_simulator(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b"])
    num_stages, num_chunks = rng.randint(1, 6), 1
    num_micro_batches = rng.randint(1, 12)
    if name == "interleaved_1f1b":
        num_stages, num_chunks = rng.randint(2, 4), rng.randint(2, 3)
        num_micro_batches = num_stages * rng.randint(1, 3)
    order = get_schedule(name).order(num_stages, num_micro_batches, num_chunks)

    def numbers(most: float) -> list[float]:
        return [rng.uniform(0, most) for _ in range(num_stages)]

    def chunked(most: float) -> list[list[float]]:
        return [[rng.uniform(0, most) for _ in range(num_chunks)] for _ in range(num_stages)]

    times = PlainTimes(chunked(4), chunked(8), numbers(2), numbers(2), numbers(9))
    simulated = simulate(
        order,
        stage_times(
            times.forward_ms,
            times.backward_ms,
            send_forward_ms=times.send_forward_ms,
            send_backward_ms=times.send_backward_ms,
            all_reduce_ms=times.all_reduce_ms,
        ),
    )
    assert replayed_time_ms(order, times) == pytest.approx(simulated.iteration_time_ms, rel=1e-12)


def test_one_micro_batch_goes_down_and_up() -> None:
    order = get_schedule("1f1b").order(2, 1)
    times = PlainTimes([[1.0], [2.0]], [[4.0], [8.0]], [16.0, 0.0], [0.0, 32.0], [64.0, 0.0])
    assert replayed_time_ms(order, times) == 1 + 16 + 2 + 8 + 32 + 4 + 64


def test_stages_that_wait_for_each_other_never_end() -> None:
    texts = (("F0", "B0", "F1", "B1"), ("F1", "B1", "F0", "B0"))
    order = Order(2, 2, 1, tuple(tuple(parse_operation(text) for text in stage) for stage in texts))
    times = PlainTimes([[1.0]] * 2, [[1.0]] * 2, [0.0] * 2, [0.0] * 2, [0.0] * 2)
    assert replayed_time_ms(order, times) == math.inf
