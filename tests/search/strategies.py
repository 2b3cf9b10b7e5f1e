"""Random problems for hypothesis: small enough to try every configuration, as wide as the problem format allows.

Every number is drawn so that it shrinks towards nothing special: one stage, one kind, one layer, times of zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import islice

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from poseidon.cost.problem import Kind, LayerCost, Matrix, Pool, Problem, places
from poseidon.search.reference import all_configurations, all_depths

SCHEDULES = ("1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b")
ONE_CHUNK = ("1f1b", "eager_1f1b", "gpipe", "adaptive_1f1b")
Draw = st.DrawFn
Limits = tuple[tuple[int, ...], ...]


def examples(count: int) -> settings:
    """The same `count` examples in every run, however long each takes."""
    return settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )


@dataclass(frozen=True)
class Space:
    """What the problems may contain: a test narrows it to what it is about."""

    schedules: tuple[str, ...] = SCHEDULES
    assignments: tuple[str, ...] = ("node", "stage")
    kinds: tuple[int, int] = (1, 3)
    stages: tuple[int, int] = (1, 5)
    spare_layers: tuple[int, int] = (0, 4)
    """Layers beyond one for each chunk."""
    layer_types: tuple[int, int] = (1, 3)
    micro_batches: int = 3
    """Most micro-batches for each stage."""
    most_depth: int = 3
    pools: bool = True
    idle: bool = True
    forbidden: bool = True
    equal_kinds: bool = False
    """All kinds cost the same."""
    times: st.SearchStrategy[float] = field(
        default_factory=lambda: st.one_of(st.integers(0, 5).map(float), st.floats(0.125, 5.0))
    )
    most_configurations: int = 200


EVERYTHING = Space()


@st.composite
def problems(draw: Draw, space: Space = EVERYTHING) -> Problem:
    """A problem of a space; with at most `most_configurations` configurations (perhaps none)."""
    problem = _problem(draw, space)
    assume(num_configurations(problem, space.most_configurations) <= space.most_configurations)
    return problem


def num_configurations(problem: Problem, most: int = 10**9) -> int:
    """How many configurations a problem has, counted one by one up to one more than `most`."""
    configurations = (one for depths in all_depths(problem) for one in all_configurations(problem, depths))
    return sum(1 for _ in islice(configurations, most + 1))


def _problem(draw: Draw, space: Space) -> Problem:
    schedule = draw(st.sampled_from(space.schedules))
    num_chunks = draw(st.integers(2, 3)) if schedule == "interleaved_1f1b" else 1
    num_stages = draw(st.integers(space.stages[0], min(space.stages[1], 3) if num_chunks > 1 else space.stages[1]))
    most_depth = draw(st.integers(1, space.most_depth)) if schedule == "adaptive_1f1b" else 1
    rounds = draw(st.integers(1, space.micro_batches))
    num_micro_batches = (
        num_stages * rounds if num_chunks > 1 else draw(st.integers(1, space.micro_batches * num_stages))
    )
    num_layers = num_stages * num_chunks + draw(st.integers(*space.spare_layers))
    num_types = draw(st.integers(*space.layer_types)) if num_chunks == 1 else 1
    allow_idle = space.idle and draw(st.booleans())
    pools = _pools(draw) if space.pools and draw(st.booleans()) else ()
    held = [(place.stage, min(place.warmup, num_micro_batches)) for place in places(num_stages, most_depth)]
    kinds: list[Kind] = []
    for index, count in enumerate(_counts(draw, space, num_stages, allow_idle)):
        limits = _limits(draw, held, num_layers, num_chunks, num_types)
        kinds.append(_kind(draw, space, index, count, num_types, limits))
    if space.equal_kinds:
        same = {"layers": kinds[0].layers, "first": kinds[0].first, "last": kinds[0].last}
        kinds = [Kind(**{**vars(kind), **same}) for kind in kinds]
    kinds = [_shared(draw, kind, pools) for kind in kinds]
    names = {kind.pool for kind in kinds}
    return Problem(
        name="random",
        schedule=schedule,
        num_chunks=num_chunks,
        num_micro_batches=num_micro_batches,
        num_layers=num_layers,
        num_stages=num_stages,
        assignment=draw(st.sampled_from(space.assignments)),
        kinds=tuple(kinds),
        intra_node_ms=_matrix(draw, space, len(kinds)),
        inter_node_ms=_matrix(draw, space, len(kinds)),
        layer_types=_layer_types(draw, num_types, num_layers),
        layer_type_names=tuple(f"type {index}" for index in range(num_types)) if num_types > 1 else ("layer",),
        pools=tuple(pool for pool in pools if pool.name in names),
        allow_idle=allow_idle,
        most_depth=most_depth,
    )


def _counts(draw: Draw, space: Space, num_stages: int, allow_idle: bool) -> list[int]:
    """Stages of each kind: they add up to `num_stages`, or to more where devices may stay idle."""
    least, most = space.kinds
    counts = [1] * draw(st.integers(min(least, num_stages), min(most, num_stages)))
    for _ in range(num_stages - len(counts) + (draw(st.integers(0, 2)) if allow_idle else 0)):
        counts[draw(st.integers(0, len(counts) - 1))] += 1
    return counts


def _kind(draw: Draw, space: Space, index: int, stages: int, num_types: int, limits: Limits) -> Kind:
    divisors = [size for size in range(1, stages + 1) if stages % size == 0]
    return Kind(
        name=f"kind {index}",
        stages=stages,
        stages_per_node=draw(st.sampled_from(divisors)),
        layers=tuple(_cost(draw, space) for _ in range(num_types)),
        first=_cost(draw, space),
        last=_cost(draw, space),
        max_layers=limits,
    )


def _limits(
    draw: Draw, held: list[tuple[int, int]], num_layers: int, num_chunks: int, num_types: int
) -> tuple[tuple[int, ...], ...]:
    """Memory limits of each place; what a stage keeps depends on its warm-up alone."""
    by_first_layer = num_types > 1 and draw(st.booleans())
    average = -(-num_layers // (held[-1][0] + 1))
    least = draw(st.sampled_from((average, average, num_layers, num_chunks, 0)))
    limit = st.integers(least, num_layers)
    row = st.tuples(*[limit] * (num_layers if by_first_layer else 1))
    rows = {place: draw(row) for place in dict.fromkeys(held)}
    return tuple(rows[place] for place in held)


def _pools(draw: Draw) -> tuple[Pool, ...]:
    sizes = draw(st.lists(st.tuples(st.sampled_from((1, 2, 4)), st.integers(1, 3)), min_size=1, max_size=2))
    return tuple(Pool(f"pool {index}", node * nodes, node) for index, (node, nodes) in enumerate(sizes))


def _shared(draw: Draw, kind: Kind, pools: tuple[Pool, ...]) -> Kind:
    """The kind, with devices of a pool where there are any; `stages` then says nothing."""
    if not pools or not draw(st.booleans()):
        return kind
    pool, devices = draw(st.sampled_from(pools)), draw(st.sampled_from((1, 2, 4)))
    return Kind(**{**vars(kind), "pool": pool.name, "devices": devices, "stages": 99})


def _layer_types(draw: Draw, num_types: int, num_layers: int) -> tuple[int, ...]:
    """Types numbered in the order of their first appearance, as in a problem file."""
    if num_types == 1:
        return ()
    drawn = draw(st.lists(st.integers(0, num_types - 1), min_size=num_layers, max_size=num_layers))
    return tuple([*range(num_types), *drawn][:num_layers])


def _cost(draw: Draw, space: Space) -> LayerCost:
    return LayerCost(draw(space.times), draw(space.times), draw(space.times))


def _matrix(draw: Draw, space: Space, size: int) -> Matrix:
    cell = space.times
    if space.forbidden and draw(st.booleans()):
        cell = st.one_of(cell, cell, cell, st.just(math.inf))
    return tuple(tuple(draw(cell) for _ in range(size)) for _ in range(size))
