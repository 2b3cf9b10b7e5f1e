"""Exhaustive search in plain Python: the judge of every other search. Use it on small problems only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from poseidon.cost.problem import Place, Problem
from poseidon.search.evaluate import configuration_times, order_graph
from poseidon.search.result import Solution, StageChoice
from poseidon.simulate.reference import longest_path

Configuration = tuple[StageChoice, ...]
Depths = tuple[int, ...]


def exhaustive_search(problem: Problem) -> Solution | None:
    """The fastest configuration of a problem, by trying every one; None where none fits.

    Among equal times the first in the declared order of solutions wins.
    """
    best: Solution | None = None
    for depths in all_depths(problem):
        for configuration in all_configurations(problem, depths):
            time_ms = reference_time(problem, configuration, depths)
            solution = Solution(problem, configuration, time_ms, depths)
            if best is None or solution.order_key < best.order_key:
                best = solution
    return best


def reference_time(problem: Problem, configuration: Sequence[StageChoice], depths: Depths = ()) -> float:
    """Iteration time (ms) of a configuration, by the plain-Python simulator."""
    graph = order_graph(problem, depths)
    weights = graph.weights(configuration_times(problem, configuration))
    return longest_path(
        graph.listing, weights.durations.tolist(), weights.transfers.tolist(), weights.all_reduce.tolist()
    )[0]


def all_depths(problem: Problem) -> Iterator[Depths]:
    """Every choice of a depth for each link; one empty choice for schedules that leave none."""
    if problem.schedule != "adaptive_1f1b":
        yield ()
        return
    yield from product(range(1, problem.most_depth + 1), repeat=problem.num_stages - 1)


def all_configurations(problem: Problem, depths: Depths = ()) -> Iterator[Configuration]:
    """Every feasible configuration: each order of kinds, each allocation within memory, each split over chunks."""
    place_of_stage = [
        problem.places.index(Place(stage, 1 + sum(depths[stage:]) if depths else problem.num_stages - stage))
        for stage in range(problem.num_stages)
    ]
    for kinds in all_orders(problem):
        limits = [problem.kinds[kind].max_layers[place] for kind, place in zip(kinds, place_of_stage, strict=True)]
        for layers in _allocations(problem, limits, 0, 0):
            for splits in product(*(list(compositions(count, problem.num_chunks)) for count in layers)):
                yield tuple(StageChoice(kind, split) for kind, split in zip(kinds, splits, strict=True))


def all_orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Every order of kinds that the assignment allows, without repetition."""
    yield from _orders(problem, (), {})


def _orders(problem: Problem, kinds: tuple[int, ...], used: dict[str, int]) -> Iterator[tuple[int, ...]]:
    if len(kinds) == problem.num_stages:
        if _wraps(problem, kinds) and (
            problem.allow_idle or all(used.get(name, 0) == size for name, size, _ in _pools(problem))
        ):
            yield kinds
        return
    for number, kind in enumerate(problem.kinds):
        name = kind.pool or f"kind {number}"
        after = _take(problem, used, name, kind.devices if kind.pool else 1)
        if after is not None and not _cannot_talk(problem, kinds, number, name, used):
            yield from _orders(problem, (*kinds, number), after)


def _wraps(problem: Problem, kinds: tuple[int, ...]) -> bool:
    """Whether the last stage can talk to the first, as it must where stages have several chunks."""
    both = (problem.inter_node_ms[kinds[-1]][kinds[0]], problem.inter_node_ms[kinds[0]][kinds[-1]])
    return problem.num_chunks == 1 or all(map(math.isfinite, both))


def _pools(problem: Problem) -> list[tuple[str, int, int]]:
    """(name, size, size of a node) of every pool; a kind without a declared pool has its own, counted in stages."""
    own = [(f"kind {i}", k.stages, k.stages_per_node) for i, k in enumerate(problem.kinds) if not k.pool]
    members = {kind.pool for kind in problem.kinds}
    return [*own, *((p.name, p.devices, p.devices_per_node) for p in problem.pools if p.name in members)]


def _take(problem: Problem, used: dict[str, int], name: str, amount: int) -> dict[str, int] | None:
    """Devices used after one more stage of a pool; None where the rules of the assignment forbid it."""
    after = dict(used)
    for pool, size, per_node in _pools(problem):
        have = after.get(pool, 0)
        if pool != name and problem.assignment == "node" and have % per_node:
            if not problem.allow_idle:
                return None
            after[pool] = min(size, (have // per_node + 1) * per_node)
        if pool == name:
            inside = have % per_node + amount <= per_node
            whole = have % per_node == 0 and amount % per_node == 0
            if have + amount > size or not (inside or whole):
                return None
            after[pool] = have + amount
    return after


def _cannot_talk(problem: Problem, kinds: tuple[int, ...], number: int, name: str, used: dict[str, int]) -> bool:
    if not kinds:
        return False
    last = kinds[-1]
    per_node = next(node for pool, _, node in _pools(problem) if pool == name)
    within = (problem.kinds[last].pool or f"kind {last}") == name and used.get(name, 0) % per_node != 0
    matrix = problem.intra_node_ms if within else problem.inter_node_ms
    return math.isinf(matrix[last][number]) or math.isinf(matrix[number][last])


def _allocations(
    problem: Problem, limits: Sequence[Sequence[int]], stage: int, placed: int
) -> Iterator[tuple[int, ...]]:
    """Every way to give stages `stage`.. their layers when `placed` layers come before them."""
    if stage == len(limits):
        if placed == problem.num_layers:
            yield ()
        return
    row = limits[stage]
    limit = row[placed] if len(row) > 1 and placed < len(row) else row[0]
    later = (len(limits) - stage - 1) * problem.num_chunks
    for count in range(problem.num_chunks, min(limit, problem.num_layers - placed - later) + 1):
        for rest in _allocations(problem, limits, stage + 1, placed + count):
            yield (count, *rest)


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every list of `parts` positive numbers with a given sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def time_prefix(
    warmup: Sequence[int],
    num_micro_batches: int,
    forward: Sequence[float],
    backward: Sequence[float],
    all_reduce: Sequence[float],
    send_forward: Sequence[float],
    send_backward: Sequence[float],
    delay: float,
) -> float:
    """Longest path of a pipeline's first stages, ms: the twin of the kernel of that name, bit for bit.

    Wave m runs B[s, m] and then F[s, m + warmup[s]] on every stage s, from the last of the given stages to the first; a
    gradient is back at the last of them `delay` after its forward ended there.
    """
    last = len(forward) - 1
    clock = [0.0] * len(forward)
    ends = [[0.0] * num_micro_batches for _ in forward]

    def run_forward(stage: int, microbatch: int) -> None:
        start = clock[stage]
        if stage:
            start = max(start, ends[stage - 1][microbatch] + send_forward[stage - 1])
        clock[stage] = ends[stage][microbatch] = start + forward[stage]

    for stage in range(len(forward)):
        for microbatch in range(warmup[stage]):
            run_forward(stage, microbatch)
    for microbatch in range(num_micro_batches):
        arrival = ends[last][microbatch] + delay
        for stage in range(last, -1, -1):
            clock[stage] = max(clock[stage], arrival) + backward[stage]
            arrival = clock[stage] + (send_backward[stage - 1] if stage else 0.0)
            if microbatch + warmup[stage] < num_micro_batches:
                run_forward(stage, microbatch + warmup[stage])
    return max(end + extra for end, extra in zip(clock, all_reduce, strict=True))
