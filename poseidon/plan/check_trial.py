"""Tries the configurations of a problem one by one: orders of kinds, allocations of layers, splits over chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from poseidon.cost.problem import Kind, LayerCost, Problem
from poseidon.plan.check_graph import Edge, Floats, SpaceGraph, Steps
from poseidon.plan.check_space import Space, Use
from poseidon.plan.replay import PlainTimes, replayed_time_ms
from poseidon.schedule import get_schedule

NUM_THRESHOLDS = 12
"""Intervals of the bottleneck that the completions are told apart by."""

Kinds = tuple[int, ...]
Layers = tuple[int, ...]


class Trial:
    """Tries configurations until an effort is used up."""

    def __init__(self, steps: Steps, operations: int) -> None:
        """The effort: partial configurations to look at, and operations to replay."""
        self._steps, self._operations_left = steps, operations
        self.tried = 0
        self.is_over = False
        """Whether the effort is used up: then None from `faster_than` proves nothing."""

    def faster_than(self, problem: Problem, time_ms: float, *, everything: bool = False) -> float | None:
        """The time of a configuration below `time_ms`; None where none was found.

        Partial configurations whose bound is not below `time_ms` are left out, unless `everything` is to be tried.
        """
        cutoff_ms = math.inf if everything else time_ms
        links = problem.num_stages - 1
        adaptive = problem.schedule == "adaptive_1f1b"
        for depths in product(range(1, problem.most_depth + 1), repeat=links) if adaptive else [()]:
            found = self._faster_with(problem, depths, time_ms, cutoff_ms)
            if found is not None or self.is_over:
                return found
        return None

    def _faster_with(self, problem: Problem, depths: tuple[int, ...], time_ms: float, cutoff_ms: float) -> float | None:
        """The same for these depths of the links."""
        graph = SpaceGraph(problem, self._steps, depths)
        completions = _Completions.of(graph, self._steps)
        if completions is None:
            self.is_over = True
            return None
        sizes = (problem.num_stages, problem.num_micro_batches, problem.num_chunks)
        order = get_schedule(problem.schedule).order(*sizes, depths=depths)
        for kinds, layers in completions.configurations(cutoff_ms):
            for times in configuration_times(graph.space, kinds, layers):
                if order.num_operations > self._operations_left:
                    self.is_over = True
                    return None
                self.tried += 1
                self._operations_left -= order.num_operations
                found = replayed_time_ms(order, times)
                if found < time_ms:
                    return found
        self.is_over = completions.is_over
        return None


class _Completions:
    """For each state the least S that the rest of the pipeline adds, for each interval of its bottleneck.

    `rests[stage][use, last kind]` has the shape [interval, layers placed].
    """

    def __init__(self, graph: SpaceGraph, steps: Steps, highs: Floats, lows: Floats) -> None:
        self._graph, self._steps, self._lows = graph, steps, lows
        self.is_over = False
        self._rests: list[dict[tuple[Use, int], Floats]] = [{} for _ in range(graph.problem.num_stages + 1)]
        for stage in reversed(range(graph.problem.num_stages)):
            costs = {
                kind: np.where(graph.beta[kind, stage] <= highs[:, None, None], graph.cost[kind, stage], np.inf)
                for kind in range(len(graph.problem.kinds))
            }
            for use, edges in graph.levels[stage].items():
                for edge in edges:
                    self._add(stage, use, edge, costs[edge.kind])

    @classmethod
    def of(cls, graph: SpaceGraph, steps: Steps) -> _Completions | None:
        """None where that is too much."""
        if not graph.levels or not steps.take(graph.num_edges * NUM_THRESHOLDS):
            return None
        values = graph.betas()
        if len(values) == 0:
            values = np.zeros(1)
        last = np.unique(np.linspace(0, len(values) - 1, NUM_THRESHOLDS + 1)[1:].astype(int))
        first = np.concatenate(([0], last[:-1] + 1))
        return cls(graph, steps, values[last], values[first])

    def _add(self, stage: int, use: Use, edge: Edge, cost: Floats) -> None:
        rest = self._rest(stage + 1, edge.after, edge.kind)
        own = (cost + rest[:, None, :]).min(axis=2)
        for last, trip in edge.boundary_ms.items():
            known = self._rests[stage].get((use, last))
            self._rests[stage][use, last] = own + trip if known is None else np.minimum(known, own + trip)

    def _rest(self, stage: int, use: Use, last: int) -> Floats:
        problem = self._graph.problem
        if stage < problem.num_stages:
            nowhere = np.full((len(self._lows), problem.num_layers + 1), np.inf)
            return self._rests[stage].get((use, last), nowhere)
        done = np.full((len(self._lows), problem.num_layers + 1), np.inf)
        if self._graph.space.is_whole(use):
            done[:, -1] = 0.0
        return done

    def configurations(self, cutoff_ms: float) -> Iterator[tuple[Kinds, Layers]]:
        """Every configuration that its parts' bounds do not show to take `cutoff_ms` or more."""
        yield from self._extended((), (), self._graph.space.start, 0, 0.0, 0.0, cutoff_ms)

    def _extended(
        self, kinds: Kinds, layers: Layers, use: Use, placed: int, sum_ms: float, beta_ms: float, cutoff_ms: float
    ) -> Iterator[tuple[Kinds, Layers]]:
        stage = len(kinds)
        if stage == self._graph.problem.num_stages:
            yield kinds, layers
            return
        for edge in self._graph.levels[stage].get(use, []):
            trip = edge.boundary_ms.get(kinds[-1] if kinds else -1, math.inf)
            sums = sum_ms + trip + self._graph.cost[edge.kind, stage][placed]
            betas = np.maximum(beta_ms, self._graph.beta[edge.kind, stage][placed])
            rest = self._rest(stage + 1, edge.after, edge.kind)
            bounds = (sums + rest + np.maximum(betas, self._lows[:, None])).min(axis=0)
            for end in np.flatnonzero(bounds < cutoff_ms).tolist():
                if not self._steps.take(1):
                    self.is_over = True
                    return
                numbers = (end, float(sums[end]), float(betas[end]), cutoff_ms)
                yield from self._extended((*kinds, edge.kind), (*layers, end - placed), edge.after, *numbers)


def configuration_times(space: Space, kinds: Kinds, layers: Layers) -> Iterator[PlainTimes]:
    """The times of a configuration, for each way to split the stages' layers over their chunks."""
    sends = _sends(space, kinds)
    splits = (list(_splits(count, space.problem.num_chunks)) for count in layers)
    for chunks in product(*splits):
        yield _times(space.problem, kinds, chunks, sends)


def split_times(space: Space, kinds: Kinds, chunks: Sequence[Layers]) -> PlainTimes:
    """The times of a configuration with these layers of each stage's chunks (N x V)."""
    return _times(space.problem, kinds, chunks, _sends(space, kinds))


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in _splits(total - first, parts - 1):
            yield (first, *rest)


def _sends(space: Space, kinds: Kinds) -> tuple[list[float], list[float]]:
    """Sends of each stage to the next and to the previous one; around the ends with chunks."""
    problem = space.problem
    forward_ms, backward_ms = [], [0.0]
    use = space.start
    for index, kind in enumerate(kinds):
        if index:
            onward, back = space.boundary_ms(use, kinds[index - 1], kind)
            forward_ms.append(onward)
            backward_ms.append(back)
        after = space.after(use, kind)
        assert after is not None
        use = after
    forward_ms.append(0.0)
    if problem.num_chunks > 1:
        forward_ms[-1] = problem.inter_node_ms[kinds[-1]][kinds[0]]
        backward_ms[0] = problem.inter_node_ms[kinds[0]][kinds[-1]]
    return forward_ms, backward_ms


def _times(
    problem: Problem,
    kinds: Kinds,
    chunks: Sequence[Layers],
    sends: tuple[Sequence[float], Sequence[float]],
) -> PlainTimes:
    forward_ms, backward_ms, all_reduce_ms = [], [], []
    first_layer = 0
    for index, (number, counts) in enumerate(zip(kinds, chunks, strict=True)):
        held = [
            _held(problem, problem.kinds[number], index, chunk, first_layer, counts) for chunk in range(len(counts))
        ]
        first_layer += sum(counts)
        forward_ms.append([sum(cost.forward_ms for cost in costs) for costs in held])
        backward_ms.append([sum(cost.backward_ms for cost in costs) for costs in held])
        all_reduce_ms.append(sum(cost.all_reduce_ms for costs in held for cost in costs))
    return PlainTimes(forward_ms, backward_ms, *sends, all_reduce_ms)


def _held(problem: Problem, kind: Kind, stage: int, chunk: int, first_layer: int, counts: Layers) -> list[LayerCost]:
    """What a chunk holds: in a mixed stack (one chunk) the layers from `first_layer` on; else all are alike."""
    costs = [kind.layers[problem.type_of_layer(first_layer + offset)] for offset in range(counts[chunk])]
    if stage == 0 and chunk == 0:
        costs.append(kind.first)
    if stage == problem.num_stages - 1 and chunk == len(counts) - 1:
        costs.append(kind.last)
    return costs
