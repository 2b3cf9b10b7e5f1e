from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poseidon.cost.layer_limits import DeviceMemory, layer_limits
from poseidon.cost.memory import NOTHING, PartMemory
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.schedule import get_schedule, peak_in_flight

PARTS = st.builds(
    PartMemory,
    state_bytes=st.integers(1, 50).map(float),
    activation_bytes=st.integers(0, 20).map(float),
    recomputed_bytes=st.integers(0, 30).map(float),
)
DEVICES = st.builds(
    DeviceMemory,
    layers=st.lists(PARTS, min_size=1, max_size=2).map(tuple),
    embedding=PARTS,
    head=PARTS,
    head_alone=PARTS,
    free_bytes=st.integers(0, 600).map(float),
)


def taken(memory: DeviceMemory, shape: PipelineShape, stage: int, chunks: Sequence[Sequence[PartMemory]]) -> float:
    """What a stage takes, by replaying the schedule's order."""
    first, last = memory.extras(stage, shape.num_stages)
    held = [list(chunk) for chunk in chunks]
    held[0].append(first)
    held[-1].append(last)
    weights = [[sum(part.activation_bytes for part in chunk) for chunk in held]] * shape.num_stages
    order = get_schedule(shape.schedule).order(shape.num_stages, shape.num_micro_batches, shape.num_chunks)
    parts = [part for chunk in held for part in chunk]
    recomputed = max(part.recomputed_bytes for part in parts)
    return sum(part.state_bytes for part in parts) + peak_in_flight(order, weights)[stage] + recomputed


@given(
    memory=DEVICES,
    schedule=st.sampled_from(["1f1b", "eager_1f1b", "gpipe"]),
    num_stages=st.integers(1, 5),
    num_micro_batches=st.integers(1, 8),
    data=st.data(),
)
def test_the_limit_is_the_most_that_fits(
    memory: DeviceMemory, schedule: str, num_stages: int, num_micro_batches: int, data: st.DataObject
) -> None:
    shape = PipelineShape(schedule, num_stages, num_micro_batches)
    types = data.draw(st.lists(st.integers(0, len(memory.layers) - 1), min_size=1, max_size=12))
    stage = data.draw(st.integers(0, num_stages - 1))
    first = data.draw(st.integers(0, len(types) - 1))

    row = layer_limits(memory, shape, types)[stage]
    limit = row[0] if len(row) == 1 else row[first]

    layers = [memory.layers[layer_type] for layer_type in types]
    if len(row) == 1:
        first = 0
    fitting = [
        n
        for n in range(1, len(layers) - first + 1)
        if taken(memory, shape, stage, [layers[first : first + n]]) <= memory.free_bytes
    ]
    assert limit == max(fitting, default=0)


@settings(max_examples=60)
@given(
    memory=DEVICES.map(
        lambda memory: DeviceMemory(memory.layers[:1], memory.embedding, memory.head, NOTHING, memory.free_bytes)
    ),
    num_stages=st.integers(2, 4),
    rounds=st.integers(1, 3),
    num_chunks=st.integers(2, 3),
    data=st.data(),
)
def test_with_chunks_every_split_within_the_limit_fits(
    memory: DeviceMemory, num_stages: int, rounds: int, num_chunks: int, data: st.DataObject
) -> None:
    shape = PipelineShape("interleaved_1f1b", num_stages, rounds * num_stages, num_chunks)
    stage = data.draw(st.integers(0, num_stages - 1))

    (limit,) = layer_limits(memory, shape, [0] * 9)[stage]

    assert limit == 0 or limit >= num_chunks
    for count in {limit, limit + 1} if num_chunks <= limit < 9 else {limit} - {0}:
        needs = [
            taken(memory, shape, stage, [[memory.layers[0]] * size for size in sizes])
            for sizes in splits(count, num_chunks)
        ]
        assert (max(needs) <= memory.free_bytes) == (count == limit)  # and no larger limit would be safe


def splits(total: int, parts: int) -> list[tuple[int, ...]]:
    cuts = combinations(range(1, total), parts - 1)
    return [tuple(b - a for a, b in zip((0, *cut), (*cut, total), strict=True)) for cut in cuts]


def test_limits_of_a_mixed_stack_depend_on_the_first_layer() -> None:
    """Two light layers, then heavy ones: 10 bytes free."""
    light, heavy = PartMemory(2.0, 0.0, 0.0), PartMemory(5.0, 0.0, 0.0)
    memory = DeviceMemory((light, heavy), NOTHING, NOTHING, NOTHING, 10.0)

    limits = layer_limits(memory, PipelineShape("1f1b", 2, 4), [0, 0, 1, 1, 1])

    assert limits == ((3, 2, 2, 2, 1), (3, 2, 2, 2, 1))


def test_the_largest_recomputation_of_the_stage_counts_once() -> None:
    """12 bytes free: two light layers and no recomputation, or one layer that recomputes 6."""
    light, heavy = PartMemory(4.0, 0.0, 0.0), PartMemory(4.0, 0.0, 6.0)
    memory = DeviceMemory((light, heavy), NOTHING, NOTHING, NOTHING, 12.0)

    limits = layer_limits(memory, PipelineShape("1f1b", 1, 1), [0, 0, 1, 1])

    assert limits == ((2, 1, 1, 1),)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [("1f1b", (4, 3, 2, 1)), ("eager_1f1b", (7, 5, 3, 1)), ("gpipe", (8, 8, 8, 8)), ("adaptive_1f1b", (4, 3, 2, 1))],
)
def test_in_flight_micro_batches_follow_the_schedule(schedule: str, expected: tuple[int, ...]) -> None:
    assert PipelineShape(schedule, 4, 8).warmup_forwards() == expected
