"""Random small problems for the searches, and the way to make more."""

import random

import pytest

from poseidon.cost.problem import Kind, LayerCost, Problem
from poseidon.schedule import get_schedule


def make_problem(seed, schedule="1f1b", num_types=1, most_depth=1, num_stages=None, cannot_talk=False):
    """A problem that plain Python can enumerate: 2-4 stages of one or two kinds, memory that binds here and there."""
    rng = random.Random(f"{seed} {schedule}")
    chunks = 2 if schedule == "interleaved_1f1b" else 1
    stages = num_stages or (rng.randint(2, 3) if chunks > 1 else rng.randint(3, 4))
    num_kinds = rng.choice([1, 2, 2])
    filled = rng.randint(1, stages - 1) if num_kinds == 2 else stages
    micro_batches = stages * rng.randint(1, 3) if chunks > 1 else rng.randint(1, 3 * stages)
    layers = stages * chunks + rng.randint(1, 3 if chunks > 1 else 6)
    places = stages if most_depth == 1 else sum(1 + (most_depth - 1) * (stages - 1 - s) for s in range(stages))

    def about(low, high):
        return round(rng.uniform(low, high) * 64) / 64  # sums of these are exact, so equal times are equal

    def cost(scale, reduce):
        return LayerCost(about(0.2 * scale, scale), about(0.4 * scale, 2 * scale), about(0, reduce))

    def kind(name, count):
        limits = [min(layers, rng.randint(layers // stages + 1, layers)) for _ in range(places)]
        return Kind(
            name=name,
            stages=count,
            stages_per_node=2 if count % 2 == 0 and rng.random() < 0.5 else 1,
            layers=tuple(cost(rng.uniform(1, 3), 4) for _ in range(num_types)),
            first=cost(rng.choice([0, 1]), 0),
            last=cost(rng.choice([0, 2]), 1),
            max_layers=tuple((max(limit, chunks),) for limit in limits),
        )

    counts = (filled, stages - filled)[:num_kinds]
    kinds = tuple(kind(f"K{index}", count) for index, count in enumerate(counts))
    matrices = [[[about(0, most) for _ in kinds] for _ in kinds] for most in (0.3, 2)]
    if cannot_talk and num_kinds == 2 and filled > 1:
        matrices[1][0][0] = float("inf")
    intra, inter = (tuple(map(tuple, matrix)) for matrix in matrices)
    problem = Problem(
        name=f"{schedule} {seed}",
        schedule=schedule,
        num_chunks=chunks,
        num_micro_batches=micro_batches,
        num_layers=layers,
        num_stages=stages,
        assignment=rng.choice(["node", "stage"]),
        kinds=kinds,
        intra_node_ms=intra,
        inter_node_ms=inter,
        layer_types=tuple(rng.randrange(num_types) for _ in range(layers)) if num_types > 1 else (),
        layer_type_names=tuple(f"type {index}" for index in range(num_types)) if num_types > 1 else ("layer",),
        most_depth=most_depth,
    )
    depths = (1,) * (stages - 1) if schedule == "adaptive_1f1b" else ()
    assert get_schedule(schedule).check_shape(stages, micro_batches, chunks, depths=depths) is None
    return problem


@pytest.fixture
def random_problem():
    """Makes the problem of a seed, a schedule and further options."""
    return make_problem
