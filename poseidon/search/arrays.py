"""A problem as read-only arrays: what the compiled search works on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import LayerCost, Problem
from poseidon.schedule import get_schedule

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class SearchArrays:
    """One problem, laid out for the kernels.

    Sizes: K kinds, N stages, L layers, P places, R rows (groups of first layers that see the same layer types after
    them), n = layers of a stage, 0 <= n <= `most_layers`. All times in milliseconds. A place is a stage with its
    warm-up: the stages themselves (P = N), but where the depth of every link is a choice each stage has a place for
    each warm-up that it may get.

    A stage of kind k at place p that starts at layer a and holds n layers takes `forward[k, p, row_of_layer[a], n]` and
    `backward[...]` per micro-batch and `all_reduce[...]` per iteration, embedding and head included. Its `cost` is what
    it adds to every round trip (F + B, and the first stage's all-reduce), its `beta` the work that it has left when the
    first micro-batch comes back: (M - w_i) F + (M - 1) B (docs/algorithm.md, family 1).
    """

    problem: Problem
    num_stages: int
    num_layers: int
    num_micro_batches: int
    num_chunks: int
    least_layers: int
    """Layers that every stage must hold: one a chunk."""
    most_layers: int
    row_of_layer: Ints
    forward: Floats
    backward: Floats
    all_reduce: Floats
    cost: Floats
    beta: Floats
    gamma: Floats
    """Work between the first backward and the last forward, (M - w_i)(F + B); what follows the stage is added to it
    (docs/algorithm.md, family 2).
    """
    alone: Floats
    """All work of the stage: a bound by itself."""
    max_layers: Ints
    """K x P x (1 or L): most layers at place p for first layer a."""
    warmup: Ints
    """P: forwards that a stage runs before its first backward."""
    first_place: Ints
    """N: the first place of each stage; the others follow in order of warm-up."""
    most_depth: int
    """Largest depth of a link that may be chosen; 1 where the schedule leaves no choice."""
    round_trips: int
    """Times that a micro-batch crosses a boundary each way: the number of chunks."""
    wrap_ms: float
    """Least time on the hops from the last stage to the first and back, for one micro-batch (chunks only)."""
    intra_node: Floats
    inter_node: Floats
    pool_of_kind: Ints
    units_of_kind: Ints
    pool_units: Ints
    node_units: Ints
    by_node: bool
    allow_idle: bool
    is_gpipe: bool
    is_interleaved: bool
    warnings: tuple[str, ...] = field(default=())


def search_arrays(problem: Problem) -> SearchArrays:
    """Lays a problem out for the kernels; raises ValueError where the schedule refuses its shape."""
    warmup, first_place = _warmups(problem)
    rows, row_of_layer = _rows(problem)
    limits = _limits(problem)
    most = int(limits.max(initial=0))
    forward, backward, all_reduce = (
        _durations(problem, rows, most, name) for name in ("forward_ms", "backward_ms", "all_reduce_ms")
    )
    interleaved = problem.num_chunks > 1
    cost = forward + backward
    too_long = np.isinf(forward)
    beta = _chunked_beta(problem, most) if interleaved else _beta(problem, forward, backward, warmup)
    gamma = _gamma(problem, forward, backward, warmup)
    beta[too_long], gamma[too_long] = np.inf, np.inf
    alone = problem.num_micro_batches * (forward + backward) + all_reduce
    pool_of_kind, units_of_kind, pool_units, node_units = _pools(problem)
    inter = np.array(problem.inter_node_ms, dtype=np.float64)
    wrap_ms = (problem.num_chunks - 1) * float((inter + inter.T).min()) if interleaved else 0.0
    at_first = slice(0, first_place[1] if problem.num_stages > 1 else None)
    cost[:, at_first] += all_reduce[:, at_first] + wrap_ms
    return SearchArrays(
        problem=problem,
        num_stages=problem.num_stages,
        num_layers=problem.num_layers,
        num_micro_batches=problem.num_micro_batches,
        num_chunks=problem.num_chunks,
        least_layers=problem.num_chunks,
        most_layers=most,
        row_of_layer=row_of_layer,
        forward=forward,
        backward=backward,
        all_reduce=all_reduce,
        cost=cost,
        beta=beta,
        gamma=gamma,
        alone=alone,
        max_layers=limits,
        warmup=warmup,
        first_place=first_place,
        most_depth=problem.most_depth,
        round_trips=problem.num_chunks,
        wrap_ms=wrap_ms,
        intra_node=np.array(problem.intra_node_ms, dtype=np.float64),
        inter_node=inter,
        pool_of_kind=pool_of_kind,
        units_of_kind=units_of_kind,
        pool_units=pool_units,
        node_units=node_units,
        by_node=problem.assignment == "node",
        allow_idle=problem.allow_idle,
        is_gpipe=problem.schedule == "gpipe",
        is_interleaved=interleaved,
    )


def _warmups(problem: Problem) -> tuple[Ints, Ints]:
    """Warm-up forwards of each place, and the first place of each stage; ValueError where the schedule refuses the
    shape.
    """
    schedule = get_schedule(problem.schedule)
    depth = problem.most_depth
    adaptive = problem.schedule == "adaptive_1f1b"
    depths = (1,) * (problem.num_stages - 1) if adaptive else ()
    shape = (problem.num_stages, problem.num_micro_batches, problem.num_chunks)
    if refusal := schedule.check_shape(*shape, depths=depths):
        raise ValueError(refusal)
    if depth > 1 and not adaptive:
        raise ValueError(f"{problem.schedule} has no depths to choose: most_depth must be 1, not {depth}")
    if adaptive:
        warmup = [min(place.warmup, problem.num_micro_batches) for place in problem.places]
    else:
        warmup = [schedule.warmup_forwards(stage, *shape) for stage in range(problem.num_stages)]
    _, starts = np.unique([place.stage for place in problem.places], return_index=True)
    return np.array(warmup, dtype=np.int32), starts.astype(np.int32)


def _rows(problem: Problem) -> tuple[list[tuple[int, ...]], Ints]:
    """The distinct sequences of layer types that can follow a first layer, and the row of each first layer."""
    if not problem.layer_types:
        return [(0,) * problem.num_layers], np.zeros(problem.num_layers + 1, dtype=np.int32)
    rows: list[tuple[int, ...]] = []
    row_of_layer = np.zeros(problem.num_layers + 1, dtype=np.int32)
    for first in range(problem.num_layers):
        rest = problem.layer_types[first:]
        for index, row in enumerate(rows):
            if row[: len(rest)] == rest:
                row_of_layer[first] = index
                break
        else:
            row_of_layer[first] = len(rows)
            rows.append(rest)
    return rows, row_of_layer


def _limits(problem: Problem) -> Ints:
    """K x P x (1 or L) memory limits in layers, cut to what can remain for a stage."""
    lengths = [set(map(len, kind.max_layers)) for kind in problem.kinds]
    columns = 1 if all(found == {1} for found in lengths) else problem.num_layers
    room = problem.num_layers - (problem.num_stages - 1) * problem.num_chunks
    limits = np.zeros((len(problem.kinds), len(problem.places), columns), dtype=np.int32)
    for k, kind in enumerate(problem.kinds):
        rows = kind.max_layers[: len(problem.places)]
        if len(lengths[k]) == 1:
            limits[k] = rows
            continue
        for place, row in enumerate(rows):
            limits[k, place] = row
    return np.clip(limits, 0, max(room, 0))


def _durations(problem: Problem, rows: list[tuple[int, ...]], most: int, name: str) -> Floats:
    """K x P x R x (most + 1): one kind of time of a stage, extras included; infinite past the end of a row."""
    stages = np.array([place.stage for place in problem.places])
    per_layer = np.array([[getattr(cost, name) for cost in kind.layers] for kind in problem.kinds])
    durations = np.zeros((len(problem.kinds), len(stages), len(rows), most + 1))
    for r, row in enumerate(rows):
        counts = _layer_counts(row, per_layer.shape[1], most)
        for k, per_type in enumerate(per_layer):
            durations[k, :, r, :] = counts @ per_type if len(per_type) > 1 else counts[:, 0] * per_type[0]
        durations[:, :, r, len(row) + 1 :] = math.inf
    durations[:, stages == 0] += _extras([kind.first for kind in problem.kinds], name)
    durations[:, stages == problem.num_stages - 1] += _extras([kind.last for kind in problem.kinds], name)
    return durations


def _extras(costs: list[LayerCost], name: str) -> Floats:
    """Of each kind, to be added to its stages."""
    return np.array([getattr(cost, name) for cost in costs], dtype=np.float64)[:, None, None, None]


def _layer_counts(row: tuple[int, ...], num_types: int, most: int) -> Floats:
    """Layers of each type among the first n of a row, for n = 0 .. most; all of the row's past its end."""
    counts = np.zeros((most + 1, num_types))
    held = min(most, len(row))
    counts[np.arange(1, held + 1), row[:held]] = 1
    return np.asarray(counts.cumsum(axis=0), dtype=np.float64)


def _beta(problem: Problem, forward: Floats, backward: Floats, warmup: Ints) -> Floats:
    """Work left on a stage when the first micro-batch is back there (docs/algorithm.md, family 1)."""
    total = problem.num_micro_batches
    with np.errstate(invalid="ignore"):  # stages past the last layer are infinite, and no work of them is left: 0 x inf
        if problem.schedule == "gpipe":
            return (total - 1) * (forward + backward)
        left = total - warmup[None, :, None, None].astype(np.float64)
        return np.asarray(left * forward + (total - 1) * backward)


def _gamma(problem: Problem, forward: Floats, backward: Floats, warmup: Ints) -> Floats:
    """Work between a stage's first backward and last forward; minus infinity where no forward follows a backward."""
    left = problem.num_micro_batches - warmup[None, :, None, None].astype(np.float64)
    if problem.num_chunks > 1:
        return np.full_like(forward, -np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(left > 0, left * (forward + backward), -np.inf)


def _chunked_beta(problem: Problem, most: int) -> Floats:
    """Family 1 for interleaved schedules: K x N x 1 x (most + 1).

    The path goes down with the first micro-batch, runs the stage's own operations from its first backward to its last
    forward of the last chunk, and comes back up with the last micro-batch. What it costs depends on the split of the
    stage's layers over its chunks: the split with the least cost counts.
    """
    beta = np.zeros((len(problem.kinds), problem.num_stages, 1, most + 1))
    counts = [_operations_between(problem, stage) for stage in range(problem.num_stages)]
    layers = np.arange(most + 1, dtype=np.float64)
    for k, kind in enumerate(problem.kinds):
        layer = kind.layers[0]
        for stage, (num_forward, num_backward) in enumerate(counts):
            per_layer = num_forward * layer.forward_ms + num_backward * layer.backward_ms
            extra = 0.0
            if stage == 0:
                extra += num_forward[0] * kind.first.forward_ms + num_backward[0] * kind.first.backward_ms
            if stage == problem.num_stages - 1:
                extra += num_forward[-1] * kind.last.forward_ms + num_backward[-1] * kind.last.backward_ms
            spare = np.maximum(layers - problem.num_chunks, 0)
            beta[k, stage, 0] = per_layer.sum() + spare * per_layer.min() + extra
    return beta


def _operations_between(problem: Problem, stage: int) -> tuple[Floats, Floats]:
    """Forwards and backwards of each chunk from a stage's first backward to its last forward (V numbers each)."""
    order = get_schedule(problem.schedule).order(problem.num_stages, problem.num_micro_batches, problem.num_chunks)
    actions = order.stages[stage]
    first = next(index for index, action in enumerate(actions) if action.kind == "B")
    last = max(index for index, action in enumerate(actions) if action.kind == "F")
    num_forward, num_backward = np.zeros(problem.num_chunks), np.zeros(problem.num_chunks)
    for action in actions[first : last + 1]:
        (num_forward if action.kind == "F" else num_backward)[action.chunk] += 1
    return num_forward, num_backward


def _pools(problem: Problem) -> tuple[Ints, Ints, Ints, Ints]:
    """Pool of each kind, units that a stage takes, units of each pool, units of a node.

    A unit is the greatest common divisor of what the pool's stages take, so that the states of the search stay few.
    """
    names = [kind.pool or f"kind {index}" for index, kind in enumerate(problem.kinds)]
    order = list(dict.fromkeys(names))
    declared = {pool.name: pool for pool in problem.pools}
    pool_of_kind = np.array([order.index(name) for name in names], dtype=np.int32)
    units = np.ones(len(names), dtype=np.int32)
    capacity = np.ones(len(order), dtype=np.int32)
    node = np.ones(len(order), dtype=np.int32)
    for index, kind in enumerate(problem.kinds):
        pool = declared.get(kind.pool)
        if pool is None:
            capacity[pool_of_kind[index]], node[pool_of_kind[index]] = kind.stages, kind.stages_per_node
            continue
        members = [other.devices for other in problem.kinds if other.pool == kind.pool]
        unit = math.gcd(*members, pool.devices_per_node, pool.devices)
        units[index] = kind.devices // unit
        capacity[pool_of_kind[index]] = pool.devices // unit
        node[pool_of_kind[index]] = pool.devices_per_node // unit
    return pool_of_kind, units, capacity, node
