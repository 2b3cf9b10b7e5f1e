"""An earlier plan as the first incumbent: as it is, or mended to fit (after a node was lost, say)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from poseidon.cost.problem import Kind, Place, Problem
from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import Floats, SearchArrays, search_arrays
from poseidon.search.evaluate import configuration_time
from poseidon.search.result import Solution, StageChoice


@dataclass(frozen=True)
class EarlierStage:
    """A stage of an earlier plan: the name of its kind (accelerator/tpN) and its layers, chunk by chunk."""

    kind: str
    layers: tuple[int, ...]

    @property
    def accelerator(self) -> str:
        """The accelerator of the kind."""
        return self.kind.rsplit("/", 1)[0]


@dataclass(frozen=True)
class EarlierPlan:
    """What a warm start needs of a plan."""

    problem: str
    """Name of its outer choice."""
    stages: tuple[EarlierStage, ...]
    depths: tuple[int, ...] = ()


def starting_solutions(problems: Iterable[Problem], earlier: EarlierPlan) -> list[Solution]:
    """Feasible configurations that follow an earlier plan, one for each problem where there is one.

    In its own problem the plan is taken as it is where it still fits. Elsewhere, or where it no longer fits, its order
    of accelerators is
    stretched over the stages and its layers are shared out anew (problems with one chunk, fixed depths and devices of
    their own).
    """
    found = []
    for problem in problems:
        for stages, depths in (_as_it_is(problem, earlier), _mended(problem, earlier.stages)):
            if stages and _is_configuration(problem, stages, depths):
                found.append(Solution(problem, stages, configuration_time(problem, stages, depths), depths))
                break
    return found


Attempt = tuple[tuple[StageChoice, ...], tuple[int, ...]]
NOTHING: Attempt = ((), ())


def _as_it_is(problem: Problem, earlier: EarlierPlan) -> Attempt:
    names = [kind.name for kind in problem.kinds]
    if problem.name != earlier.problem or not {stage.kind for stage in earlier.stages} <= set(names):
        return NOTHING
    stages = tuple(StageChoice(names.index(stage.kind), stage.layers) for stage in earlier.stages)
    return stages, earlier.depths


def _is_configuration(problem: Problem, stages: Sequence[StageChoice], depths: Sequence[int]) -> bool:
    """Whether this is a feasible configuration of the problem, by its stage graph and its memory limits."""
    adaptive = problem.schedule == "adaptive_1f1b"
    if len(stages) != problem.num_stages or len(depths) != (problem.num_stages - 1 if adaptive else 0):
        return False
    if any(len(stage.layers) != problem.num_chunks or min(stage.layers) < 1 for stage in stages):
        return False
    if sum(stage.num_layers for stage in stages) != problem.num_layers:
        return False
    arrays = search_arrays(problem)
    graph = StageGraph(arrays)
    return graph.complete and _reaches_the_end(arrays, graph, stages, depths)


def _reaches_the_end(
    arrays: SearchArrays, graph: StageGraph, stages: Sequence[StageChoice], depths: Sequence[int]
) -> bool:
    """Follows the edges of the stages' kinds and places, within memory and over boundaries where the kinds can talk."""
    num_stages, placed, last = arrays.num_stages, 0, -1
    edges, groups = graph.edges, {0}
    for index, stage in enumerate(stages):
        extra = sum(depths[index:]) - (num_stages - 1 - index) if depths else 0
        place = int(arrays.first_place[index]) + extra
        first_place_after = arrays.first_place[index + 1] if index + 1 < num_stages else len(arrays.warmup)
        if extra < 0 or place >= first_place_after:
            return False
        limits = arrays.max_layers[stage.kind, place]
        if stage.num_layers > limits[min(placed, len(limits) - 1)]:
            return False
        mine = edges[np.isin(edges[:, 0], list(groups)) & (edges[:, 1] == stage.kind) & (edges[:, 2] == place)]
        if last >= 0:
            within = mine[:, 4].astype(bool) & (arrays.pool_of_kind[last] == arrays.pool_of_kind[stage.kind])
            times = np.where(
                within, _both_ways(arrays.intra_node, last, stage.kind), _both_ways(arrays.inter_node, last, stage.kind)
            )
            mine = mine[np.isfinite(times)]
        groups = set(mine[:, 3].tolist())
        placed, last = placed + stage.num_layers, stage.kind
    wraps = arrays.num_chunks == 1 or isfinite(_both_ways(arrays.inter_node, last, stages[0].kind))
    return wraps and bool(graph.finals[list(groups)].any())


def _both_ways(times: Floats, one: int, other: int) -> float:
    return float(times[one, other] + times[other, one])


def _mended(problem: Problem, earlier: Sequence[EarlierStage]) -> Attempt:
    if problem.pools or problem.allow_idle or problem.num_chunks > 1:
        return NOTHING
    if any(len(row) > 1 for kind in problem.kinds for row in kind.max_layers):
        return NOTHING
    kinds = _stretched_order(problem, earlier)
    layers = _shared_out(problem, kinds)
    depths = (1,) * (problem.num_stages - 1) if problem.schedule == "adaptive_1f1b" else ()
    return tuple(StageChoice(kind, (count,)) for kind, count in zip(kinds, layers, strict=True)), depths


def _stretched_order(problem: Problem, earlier: Sequence[EarlierStage]) -> list[int]:
    """The earlier order of accelerators over the problem's stages, node by node; kinds that run out give way to the
    fullest one left.
    """
    left = [kind.stages for kind in problem.kinds]
    order: list[int] = []
    while len(order) < problem.num_stages:
        wanted = earlier[len(order) * len(earlier) // problem.num_stages].accelerator
        ready = [index for index, count in enumerate(left) if count > 0]
        same = [index for index in ready if problem.kinds[index].name.rsplit("/", 1)[0] == wanted]
        kind = same[0] if same else max(ready, key=lambda index: (left[index], -index))
        size = min(problem.kinds[kind].stages_per_node if problem.assignment == "node" else 1, left[kind])
        left[kind] -= size
        order += [kind] * size
    return order


def _shared_out(problem: Problem, kinds: Sequence[int]) -> list[int]:
    """Layers for each stage: one each, then each further one to the stage that stays fastest with it, within memory.

    Where memory is short the layers do not add up to the model's.
    """
    places = [problem.places.index(Place(index, problem.num_stages - index)) for index in range(len(kinds))]
    limits = [problem.kinds[kind].max_layers[place][0] for kind, place in zip(kinds, places, strict=True)]
    layers = [1] * len(kinds)
    per_layer = [_per_layer(problem.kinds[kind]) for kind in kinds]
    for _ in range(problem.num_layers - len(kinds)):
        open_ = [index for index, count in enumerate(layers) if count < limits[index]]
        if not open_:
            break
        chosen = min(open_, key=lambda index: ((layers[index] + 1) * per_layer[index], index))
        layers[chosen] += 1
    return layers


def _per_layer(kind: Kind) -> float:
    return kind.layers[0].forward_ms + kind.layers[0].backward_ms
