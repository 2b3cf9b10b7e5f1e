"""The policy `hexiscale`: the planner of Yan et al., "HexiScale" (arXiv 2409.01143), from its published description.

Two phases: devices are grouped by bandwidth and type into pipelines and stages, then the layers are shared out over the
stages in proportion to their memory. docs/rivals.md lists where this deviates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from poseidon.cost.layout import divisors_of
from poseidon.cost.placement import AlikeNodes, fit_refusal
from poseidon.profile.degrees import tp_degrees
from poseidon.search.rivals.device_graph import merged_chain
from poseidon.search.rivals.layer_balance import balanced_layers
from poseidon.search.rivals.rival import Candidate, Incumbent, RivalAnswer, RivalTask
from poseidon.search.rivals.stage_costs import StageCosts, limit_at

Stage = tuple[int, int, int]
"""(index of its pool of alike nodes, DP, TP)."""


def hexiscale_search(task: RivalTask) -> RivalAnswer:
    """HexiScale's plan; raises InputError where the profile lacks a row or the experiment does not allow 1F1B."""
    costs, incumbent = StageCosts(task), Incumbent(task)
    try:
        for stages in _device_groups(task):
            if incumbent.must_stop():
                break
            for num_micro_batches in divisors_of(task.experiment.training.global_batch_size // stages[0][1]):
                layers = _layers_by_memory(costs, stages, num_micro_batches)
                if layers is None:
                    continue
                incumbent.num_candidates += 1
                estimate_ms = estimated_ms(costs, stages, layers, num_micro_batches)
                if estimate_ms < incumbent.estimate_ms:
                    incumbent.offer(Candidate(costs.pipeline(stages, num_micro_batches), layers, estimate_ms))
    except KeyboardInterrupt:
        task.watch.interrupt()
    return incumbent.answer()


def _device_groups(task: RivalTask) -> Iterator[list[Stage]]:
    """Phase 1: for every number of pipelines and TP of each type the stages, along the chain and back."""
    cluster, pools = task.experiment.cluster, task.pools
    chain = merged_chain(cluster, pools)
    orders = dict.fromkeys((chain, chain[::-1]))
    names = list(dict.fromkeys(pool.group.accelerator for pool in pools))
    degrees = [tp_degrees(task.experiment.model, cluster, name) for name in names]
    for dp in divisors_of(task.experiment.training.global_batch_size):
        for combination in product(*degrees):
            if task.watch.must_stop():
                return
            tp_of = dict(zip(names, combination, strict=True))
            for order in orders:
                stages = _stages(pools, order, dp, tp_of)
                if stages is None or len(stages) > task.experiment.model.num_layers:
                    continue
                if task.allows([(stage[1], stage[2]) for stage in stages]):
                    yield stages


def _stages(pools: Sequence[AlikeNodes], order: Sequence[int], dp: int, tp_of: dict[str, int]) -> list[Stage] | None:
    """Every pool cut into stages of D x TP devices; None where that leaves devices over or splits a node."""
    stages: list[Stage] = []
    for index in order:
        group = pools[index].group
        tp = tp_of[group.accelerator]
        if fit_refusal(group.devices, dp, tp, group.accelerator) or pools[index].num_devices % (dp * tp):
            return None
        stages += [(index, dp, tp)] * (pools[index].num_devices // (dp * tp))
    return stages


def _layers_by_memory(costs: StageCosts, stages: Sequence[Stage], num_micro_batches: int) -> tuple[int, ...] | None:
    """Phase 2: layers in proportion to the memory of a stage's TP group; None where they don't fit."""
    if not all(costs.can_serve(*stage, num_micro_batches) for stage in set(stages)):
        return None
    memory = [costs.stage(*stage, num_micro_batches).memory.free_bytes * stage[2] for stage in stages]
    limits = [costs.limits(*stage, num_micro_batches, len(stages)) for stage in stages]
    demand = [1.0] * costs.experiment.model.num_layers
    balance = balanced_layers(demand, memory, lambda stage, first: limit_at(limits[stage], stage, first))
    return None if balance is None else balance.layers


def estimated_ms(costs: StageCosts, stages: Sequence[Stage], layers: Sequence[int], num_micro_batches: int) -> float:
    """Eq. 1, which HexiScale shares with AMP: t_s of all stages, (M - 1) x the largest, the slowest all-reduce (ms)."""
    per_stage, all_reduces, first, last = [], [], 0, len(stages) - 1
    crossings = [_round_trip_ms(costs, stages, index, num_micro_batches) for index in range(last)]
    for index, (stage, count, crossing) in enumerate(zip(stages, layers, [*crossings, 0.0], strict=True)):
        part = costs.stage(*stage, num_micro_batches)
        ends = {"is_first": index == 0, "is_last": index == last}
        per_stage.append(part.stage_ms(first, first + count, **ends) + crossing)
        all_reduces.append(part.stage_all_reduce_ms(first, first + count, **ends))
        first += count
    return sum(per_stage) + (num_micro_batches - 1) * max(per_stage) + max(all_reduces)


def _round_trip_ms(costs: StageCosts, stages: Sequence[Stage], index: int, num_micro_batches: int) -> float:
    """An activation over the boundary after a stage, and a gradient back."""
    before, after = stages[index], stages[index + 1]
    node = costs.pools[before[0]].group.devices
    start = sum(dp * tp for pool, dp, tp in stages[: index + 1] if pool == before[0])
    same_node = before[0] == after[0] and start % node != 0
    there = costs.boundary_ms(before, after, num_micro_batches, same_node=same_node)
    return there + costs.boundary_ms(after, before, num_micro_batches, same_node=same_node)
