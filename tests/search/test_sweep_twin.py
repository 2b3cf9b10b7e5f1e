"""The sweep kernel and its plain-Python twin give the same time to the last bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from poseidon.schedule import get_schedule
from poseidon.search._sweep import time_prefix
from poseidon.search.reference import time_prefix as plain_time_prefix


@pytest.mark.parametrize("schedule", ["1f1b", "eager_1f1b", "gpipe"])
def test_kernel_and_twin_agree_on_random_prefixes(schedule):
    rng = random.Random(schedule)
    for _ in range(150):
        num_stages, num_micro_batches = rng.randint(1, 7), rng.randint(1, 20)
        count = rng.randint(1, num_stages)
        warmup = [
            get_schedule(schedule).warmup_forwards(stage, num_stages, num_micro_batches) for stage in range(num_stages)
        ]
        times = [[rng.uniform(0, 9) for _ in range(count)] for _ in range(5)]
        delay = rng.choice([0.0, rng.uniform(0, 30)])
        kernel = time_prefix(np.array(warmup, dtype=np.int32), num_micro_batches, *map(np.array, times), delay)
        assert kernel == plain_time_prefix(warmup, num_micro_batches, *times, delay)


def test_a_pipeline_of_two_stages_worked_out_by_hand():
    # 1F1B, M = 2: F0 1-1, F1 on stage 0 1..2; stage 1: F0 2..4 (1 + transfer 1 = 2), B0 4..8, F1 8..10, B1 10..14;
    # gradients reach stage 0 one later: B0 9..12, B1 15..18, and its all-reduce takes 5.
    pair = ([1.0, 2.0], [3.0, 4.0], [5.0, 0.0], [1.0, 0.0], [1.0, 0.0])
    assert plain_time_prefix([2, 1], 2, *pair, 0.0) == 23.0
    assert time_prefix(np.array([2, 1], dtype=np.int32), 2, *map(np.array, pair), 0.0) == 23.0
