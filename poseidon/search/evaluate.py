"""The exact time of a complete configuration, outside the kernels of the search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from poseidon.cost.problem import LayerCost, Problem
from poseidon.schedule import get_schedule
from poseidon.search.result import StageChoice
from poseidon.simulate.graph import Graph, build_graph
from poseidon.simulate.stage_times import StageTimes, stage_times


@lru_cache(maxsize=4)
def _graph(schedule: str, num_stages: int, num_micro_batches: int, num_chunks: int, depths: tuple[int, ...]) -> Graph:
    return build_graph(get_schedule(schedule).order(num_stages, num_micro_batches, num_chunks, depths=depths))


def order_graph(problem: Problem, depths: tuple[int, ...] = ()) -> Graph:
    """The graph of a problem's schedule: one for every configuration of the problem (with the same depths)."""
    return _graph(problem.schedule, problem.num_stages, problem.num_micro_batches, problem.num_chunks, depths)


def configuration_time(problem: Problem, stages: Sequence[StageChoice], depths: tuple[int, ...] = ()) -> float:
    """Iteration time (ms) of a configuration."""
    graph = order_graph(problem, depths)
    weights = graph.weights(configuration_times(problem, stages))
    return float(graph.kernel.time(weights.durations, weights.transfers, weights.all_reduce))


def configuration_times(problem: Problem, stages: Sequence[StageChoice]) -> StageTimes:
    """Durations and transfers of every stage of a configuration (contract, "Problem")."""
    kinds = [stage.kind for stage in stages]
    forward, backward, all_reduce = [], [], []
    placed = 0
    for index, stage in enumerate(stages):
        costs = [_chunk_cost(problem, stages, index, chunk, placed) for chunk in range(problem.num_chunks)]
        placed += stage.num_layers
        forward.append([cost.forward_ms for cost in costs])
        backward.append([cost.backward_ms for cost in costs])
        all_reduce.append(sum(cost.all_reduce_ms for cost in costs))
    same_node = boundaries_within_nodes(problem, kinds)
    links = [problem.intra_node_ms if same else problem.inter_node_ms for same in same_node]
    wraps = problem.num_chunks > 1
    send_forward = [links[i][kinds[i]][kinds[i + 1]] for i in range(len(links))]
    send_backward = [links[i][kinds[i + 1]][kinds[i]] for i in range(len(links))]
    return stage_times(
        forward,
        backward,
        send_forward_ms=[*send_forward, problem.inter_node_ms[kinds[-1]][kinds[0]] if wraps else 0.0],
        send_backward_ms=[problem.inter_node_ms[kinds[0]][kinds[-1]] if wraps else 0.0, *send_backward],
        all_reduce_ms=all_reduce,
    )


def _chunk_cost(problem: Problem, stages: Sequence[StageChoice], index: int, chunk: int, placed: int) -> LayerCost:
    """Cost of one chunk of a stage; `placed` layers come before the stage (with chunks all layers are of one type)."""
    kind = problem.kinds[stages[index].kind]
    num_layers = stages[index].layers[chunk]
    counts = [0] * len(kind.layers)
    for layer in range(placed, placed + num_layers) if problem.layer_types else ():
        counts[problem.layer_types[layer]] += 1
    if not problem.layer_types:
        counts[0] = num_layers
    extras = [kind.first] * (index == 0 and chunk == 0)
    extras += [kind.last] * (index == len(stages) - 1 and chunk == problem.num_chunks - 1)

    def total(name: str) -> float:
        layers: float = sum(count * getattr(cost, name) for count, cost in zip(counts, kind.layers, strict=True))
        for extra in extras:
            layers += getattr(extra, name)
        return layers

    return LayerCost(total("forward_ms"), total("backward_ms"), total("all_reduce_ms"))


def boundaries_within_nodes(problem: Problem, kinds: Sequence[int]) -> list[bool]:
    """For each boundary between consecutive stages: whether both lie on one node.

    Stages take the devices of their pool in pipeline order; under node assignment a node that was begun is left for
    good when the pipeline goes on elsewhere.
    """
    declared = {pool.name: pool for pool in problem.pools}
    used: dict[str, int] = {}
    within: list[bool] = []
    begun = ""
    for index, number in enumerate(kinds):
        kind = problem.kinds[number]
        name = kind.pool or f"kind {number}"
        per_node = declared[kind.pool].devices_per_node if kind.pool else kind.stages_per_node
        if problem.assignment == "node" and begun and begun != name:
            other_per_node = _devices_per_node(problem, begun)
            used[begun] = -(-used[begun] // other_per_node) * other_per_node
        if index:
            within.append(begun == name and used.get(name, 0) % per_node != 0)
        used[name] = used.get(name, 0) + (kind.devices if kind.pool else 1)
        begun = name
    return within


def _devices_per_node(problem: Problem, pool: str) -> int:
    """Devices of a node of a pool, in the pool's own units (stages, where a kind has a pool to itself)."""
    for declared in problem.pools:
        if declared.name == pool:
            return declared.devices_per_node
    return problem.kinds[int(pool.removeprefix("kind "))].stages_per_node
