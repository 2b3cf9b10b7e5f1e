"""The sweep over micro-batches is the simulator, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.schedule import get_schedule
from poseidon.search._sweep import time_prefix
from poseidon.simulate import build_graph, stage_times
from poseidon.simulate.reference import longest_path
from tests.search.strategies import ONE_CHUNK, examples

MILLISECONDS = st.one_of(st.just(0.0), st.floats(0.001, 100.0))


@given(data=st.data(), schedule=st.sampled_from(ONE_CHUNK), num_stages=st.integers(1, 9), total=st.integers(1, 30))
@examples(200)
def test_a_whole_pipeline_takes_what_the_simulator_says(
    data: st.DataObject, schedule: str, num_stages: int, total: int
) -> None:
    depth = st.integers(1, 4)
    depths = tuple(data.draw(depth) for _ in range(num_stages - 1)) if schedule == "adaptive_1f1b" else ()
    plan = get_schedule(schedule)
    drawn = [data.draw(st.lists(MILLISECONDS, min_size=num_stages, max_size=num_stages)) for _ in range(5)]
    forward, backward, reduce, down, up = (np.array(values) for values in drawn)
    times = stage_times(
        forward.tolist(),
        backward.tolist(),
        send_forward_ms=down.tolist(),
        send_backward_ms=up.tolist(),
        all_reduce_ms=reduce.tolist(),
    )
    graph = build_graph(plan.order(num_stages, total, depths=depths))
    weights = graph.weights(times)
    plain, _ = longest_path(
        graph.listing, weights.durations.tolist(), weights.transfers.tolist(), weights.all_reduce.tolist()
    )
    stages = range(num_stages)
    warmup = np.array([plan.warmup_forwards(s, num_stages, total, depths=depths) for s in stages], dtype=np.int32)
    # The sweep names a boundary's transfers after the stage before it, a gradient's time included.
    swept = time_prefix(warmup, total, forward, backward, reduce, down[:-1].copy(), up[1:].copy(), 0.0)
    assert swept == plain == graph.kernel.time(weights.durations, weights.transfers, weights.all_reduce)


def test_two_stages_by_hand() -> None:
    # 1F1B, two micro-batches: F0 0-2, F1 2-4 | F0 3-6, B0 6-12, F1 12-15, B1 15-21 | B0 13-17, B1 22-26, all-reduce 27.
    warmup = np.array([2, 1], dtype=np.int32)
    forward, backward, reduce = np.array([2.0, 3.0]), np.array([4.0, 6.0]), np.array([1.0, 2.0])
    one = np.ones(1)
    assert time_prefix(warmup, 2, forward, backward, reduce, one, one, 0.0) == 27.0
    # The first stage alone, its gradients back 11 ms after each forward: B0 13-17, B1 17-21.
    first = slice(0, 1)
    alone = time_prefix(warmup, 2, forward[first], backward[first], reduce[first], np.zeros(0), np.zeros(0), 11.0)
    assert alone == 22.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forward": np.zeros(0)}, "0 stages are timed; accepted: 1 to 2"),
        ({"forward": np.ones(3)}, "3 stages are timed; accepted: 1 to 2"),
        ({"backward": np.ones(1)}, "must have the same length"),
        ({"all_reduce": np.ones(3)}, "must have the same length"),
        ({"send_forward": np.zeros(0)}, "one transfer time is needed for each boundary"),
        ({"send_backward": np.zeros(0)}, "one transfer time is needed for each boundary"),
        ({"warmup": np.array([3, 1], dtype=np.int32)}, "warmup must lie between 1 and the number of micro-batches"),
        ({"warmup": np.array([2, 0], dtype=np.int32)}, "warmup must lie between 1 and the number of micro-batches"),
    ],
)
def test_sizes_that_do_not_agree_are_refused(changes: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {
        "warmup": np.array([2, 1], dtype=np.int32),
        "num_micro_batches": 2,
        "forward": np.ones(2),
        "backward": np.ones(2),
        "all_reduce": np.ones(2),
        "send_forward": np.ones(1),
        "send_backward": np.ones(1),
        "delay": 0.0,
    }
    with pytest.raises(ValueError, match=message):
        time_prefix(**(fields | changes))
