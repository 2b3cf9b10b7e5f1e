"""An independent judge: the longest path by the definition of the model, straight from the operations' names."""

import random
from functools import cache

import pytest

from poseidon.schedule import get_schedule
from poseidon.simulate import stage_times


def judge_time(operations, times, num_chunks):
    """Iteration time of each stage's operations (``F0.1``), by a recursion that shares no code with the package."""
    num_stages = len(operations)
    last = num_stages * num_chunks - 1
    parsed = [
        [(name[0], int((name[1:] + ".0").split(".")[0]), int((name[1:] + ".0").split(".")[1])) for name in names]
        for names in operations
    ]
    duration = {"F": times.forward_ms, "B": times.backward_ms, "I": times.input_ms, "W": times.weight_ms}

    @cache
    def end(stage, position):
        kind, microbatch, chunk = parsed[stage][position]
        start = end(stage, position - 1) if position else 0.0
        virtual = chunk * num_stages + stage
        if kind == "F" and virtual > 0:
            sender = (virtual - 1) % num_stages
            place = parsed[sender].index(("F", microbatch, (virtual - 1) // num_stages))
            start = max(start, end(sender, place) + times.send_forward_ms[sender])
        if kind in "BI" and virtual < last:
            sender, from_chunk = (virtual + 1) % num_stages, (virtual + 1) // num_stages
            gradient = "B" if ("B", microbatch, from_chunk) in parsed[sender] else "I"
            place = parsed[sender].index((gradient, microbatch, from_chunk))
            start = max(start, end(sender, place) + times.send_backward_ms[sender])
        return start + duration[kind][stage][chunk]

    for position in range(max(map(len, parsed))):  # keeps the recursion shallow
        for stage in range(num_stages):
            if position < len(parsed[stage]):
                end(stage, position)
    return max(end(stage, len(names) - 1) + times.all_reduce_ms[stage] for stage, names in enumerate(parsed))


def random_times(rng, num_stages, num_chunks=1):
    """Times as they come: stages differ, some transfers and all-reduces take nothing."""
    per_chunk = [[rng.uniform(0.5, 4) for _ in range(num_chunks)] for _ in range(3 * num_stages)]
    per_stage = [rng.choice([0.0, rng.uniform(0, 3)]) for _ in range(3 * num_stages)]
    return stage_times(
        per_chunk[:num_stages],
        per_chunk[num_stages : 2 * num_stages],
        input_ms=per_chunk[2 * num_stages :],
        weight_ms=per_chunk[:num_stages],
        send_forward_ms=per_stage[:num_stages],
        send_backward_ms=per_stage[num_stages : 2 * num_stages],
        all_reduce_ms=per_stage[2 * num_stages :],
    )


def random_order(rng):
    """An order of one of the schedules, small enough for the judge; every other one with some backwards split."""
    name = rng.choice(["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b"])
    num_stages = rng.randint(1, 6)
    num_chunks = rng.randint(1, 4) if name == "interleaved_1f1b" else 1
    num_micro_batches = num_stages * rng.randint(1, 3) if name == "interleaved_1f1b" else rng.randint(1, 12)
    depths = [rng.randint(1, 3) for _ in range(num_stages - 1)] if name == "adaptive_1f1b" else ()
    return get_schedule(name).order(num_stages, num_micro_batches, num_chunks, depths=depths)


@pytest.fixture
def judge():
    return judge_time


@pytest.fixture
def make_times():
    return random_times


@pytest.fixture
def make_order():
    return random_order


@pytest.fixture(params=range(40))
def rng(request):
    return random.Random(request.param)
