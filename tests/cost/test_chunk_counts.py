from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.chunk_counts import chunk_counts
from poseidon.schedule import get_schedule


@given(num_stages=st.integers(2, 6), rounds=st.integers(1, 4), num_chunks=st.integers(2, 4), data=st.data())
def test_counts_are_those_of_a_replay(num_stages: int, rounds: int, num_chunks: int, data: st.DataObject) -> None:
    schedule, num_micro_batches = get_schedule("interleaved_1f1b"), rounds * num_stages
    stage = data.draw(st.integers(0, num_stages - 1))
    counts, states = np.zeros(num_chunks, dtype=np.int64), set()
    seen_backward = False
    for position, action in enumerate(
        actions := schedule.order(num_stages, num_micro_batches, num_chunks).stages[stage]
    ):
        counts[action.chunk] += 1 if action.kind == "F" else -1
        seen_backward = seen_backward or action.kind == "B"
        last_of_warmup = action.kind == "F" and (position + 1 == len(actions) or actions[position + 1].kind == "B")
        if last_of_warmup:
            states.add(tuple(counts.tolist()))

    warmup = schedule.warmup_forwards(stage, num_stages, num_micro_batches, num_chunks)
    predicted = {tuple(row) for row in chunk_counts(warmup, num_stages, num_micro_batches, num_chunks).tolist()}

    assert states == predicted
