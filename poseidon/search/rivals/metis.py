"""The policy `metis`: the planner of Um et al., "Metis" (USENIX ATC 2024), from its published description.

Orders of node types x device groups x numbers of micro-batches; within a stage DP first, traded for TP where memory
does not suffice; layers by compute capacity; the plan with the least cost by its own formula. docs/rivals.md lists
where this deviates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from poseidon.cost.layout import divisors_of
from poseidon.cost.placement import AlikeNodes
from poseidon.search.rivals.device_groups import Sizes, device_groups
from poseidon.search.rivals.layer_balance import Balance, balanced_layers
from poseidon.search.rivals.rival import Candidate, Incumbent, RivalAnswer, RivalTask
from poseidon.search.rivals.stage_costs import StageCosts, limit_at

GROUP_VARIANCE = 1.0
"""`min_group_scale_variance`: least size of a group, as a multiple of an even share (Metis' README)."""
MAX_PERMUTE_LEN = 6
"""`max_permute_len`: most pieces of a sequence of groups that are permuted (Metis' published example)."""
Stage = tuple[int, int, int]
"""(index of its pool of alike nodes, DP, TP)."""


@dataclass(frozen=True)
class Slot:
    """The devices of a stage: its pool of alike nodes (by index), its first device there, and how many."""

    pool: int
    first: int
    size: int


def metis_search(
    task: RivalTask, variance: float = GROUP_VARIANCE, max_permute_len: int = MAX_PERMUTE_LEN
) -> RivalAnswer:
    """Metis' plan; raises InputError where the profile lacks a row or the experiment does not allow 1F1B."""
    costs, incumbent = StageCosts(task), Incumbent(task)
    try:
        for slots, num_micro_batches in _inter_stage_plans(task, variance, max_permute_len):
            if incumbent.must_stop():
                break
            for stages, balance in intra_stage_plans(costs, slots, num_micro_batches):
                incumbent.num_candidates += 1
                if not task.allows([(dp, tp) for _, dp, tp in stages]):
                    continue
                estimate_ms = estimated_ms(costs, slots, stages, balance.layers, num_micro_batches)
                if estimate_ms < incumbent.estimate_ms:
                    pipeline = costs.pipeline(stages, num_micro_batches)
                    incumbent.offer(Candidate(pipeline, balance.layers, estimate_ms))
    except KeyboardInterrupt:
        task.watch.interrupt()
    return incumbent.answer()


def _inter_stage_plans(
    task: RivalTask, variance: float, max_permute_len: int
) -> Iterator[tuple[tuple[Slot, ...], int]]:
    """Devices of each stage and number of micro-batches: what Metis calls an inter-stage plan, in its order."""
    experiment, pools = task.experiment, task.pools
    num_devices = experiment.cluster.num_devices
    types = list(dict.fromkeys(pool.group.accelerator for pool in pools))
    batches = divisors_of(experiment.training.global_batch_size)[::-1]
    for order in permutations(types):
        for num_stages in range(1, min(num_devices, experiment.model.num_layers) + 1):
            for sizes in device_groups(num_devices, num_stages, variance, max_permute_len):
                slots = slots_of(pools, order, sizes)
                if slots is not None:
                    yield from ((slots, number) for number in batches)
                elif task.watch.must_stop():
                    return


def slots_of(pools: Sequence[AlikeNodes], order: Sequence[str], sizes: Sizes) -> tuple[Slot, ...] | None:
    """The devices of each stage when groups take them in order; None where a group has two types or splits a node."""
    ranked = [index for name in order for index, pool in enumerate(pools) if pool.group.accelerator == name]
    slots, place, used = [], 0, 0
    for size in sizes:
        pool = pools[ranked[place]]
        node = pool.group.devices
        inside = used % size == 0 and node % size == 0
        whole = used % node == 0 and size % node == 0
        if used + size > pool.num_devices or not (inside or whole):
            return None
        slots.append(Slot(ranked[place], used, size))
        used += size
        if used == pool.num_devices:
            place, used = place + 1, 0
    return tuple(slots)


def intra_stage_plans(
    costs: StageCosts, slots: Sequence[Slot], num_micro_batches: int
) -> Iterator[tuple[list[Stage], Balance]]:
    """Strategies (DP, TP) of all stages with their layers: what Metis calls intra-stage plans.

    DP goes before TP: all stages begin with pure DP, and one at a time halves its DP for twice the TP, the one with the
    least memory left (the largest DP where no layers could be placed). The first strategy whose layers fit without a
    correction is the last.
    """
    stages: list[Stage] = [(slot.pool, slot.size, 1) for slot in slots]
    room: Sequence[float] | None = None
    if any(not _has_strategy(costs, slot, num_micro_batches) for slot in slots):
        return
    while True:
        if all(costs.can_serve(*stage, num_micro_batches) for stage in stages):
            balance = _balance(costs, stages, num_micro_batches)
            room = None if balance is None else balance.room
            if balance is not None:
                yield list(stages), balance
                if balance.attempts == 1:
                    return
        least = [1 / dp for _, dp, _ in stages] if room is None else room
        for index in sorted(range(len(stages)), key=lambda index: least[index]):
            pool, dp, tp = stages[index]
            if dp % 2 == 0:
                stages[index] = (pool, dp // 2, tp * 2)
                break
        else:
            return


def _has_strategy(costs: StageCosts, slot: Slot, num_micro_batches: int) -> bool:
    halvings = range(slot.size.bit_length())
    return any(costs.can_serve(slot.pool, slot.size >> k, 1 << k, num_micro_batches) for k in halvings)


def _balance(costs: StageCosts, stages: Sequence[Stage], num_micro_batches: int) -> Balance | None:
    """Layers by compute capacity: the speed at which a stage would compute the whole model."""
    parts = [costs.stage(*stage, num_micro_batches) for stage in stages]
    limits = [costs.limits(*stage, num_micro_batches, len(stages)) for stage in stages]
    num_layers = costs.experiment.model.num_layers
    whole = [part.stage_ms(0, num_layers, is_first=True, is_last=True) for part in parts]
    reference = parts[0]
    demand = [
        reference.stage_ms(layer, layer + 1, is_first=layer == 0, is_last=layer == num_layers - 1)
        for layer in range(num_layers)
    ]
    return balanced_layers(
        demand, [1 / time_ms for time_ms in whole], lambda stage, first: limit_at(limits[stage], stage, first)
    )


def estimated_ms(
    costs: StageCosts, slots: Sequence[Slot], stages: Sequence[Stage], layers: Sequence[int], num_micro_batches: int
) -> float:
    """Metis' formula: sum of stages + (M - 1) x the slowest + every boundary once + the slowest all-reduce (ms)."""
    work, all_reduces, first = [], [], 0
    last = len(stages) - 1
    for index, (stage, count) in enumerate(zip(stages, layers, strict=True)):
        part = costs.stage(*stage, num_micro_batches)
        ends = {"is_first": index == 0, "is_last": index == last}
        work.append(part.stage_ms(first, first + count, **ends))
        all_reduces.append(part.stage_all_reduce_ms(first, first + count, **ends))
        first += count
    boundaries_ms = sum(
        costs.boundary_ms(stages[i], stages[i + 1], num_micro_batches, same_node=_on_one_node(costs, before, after))
        for i, (before, after) in enumerate(pairwise(slots))
    )
    return sum(work) + (num_micro_batches - 1) * max(work) + boundaries_ms + max(all_reduces)


def _on_one_node(costs: StageCosts, before: Slot, after: Slot) -> bool:
    """Whether the devices of two neighbouring stages are of one node."""
    node = costs.pools[before.pool].group.devices
    if before.pool != after.pool or max(before.size, after.size) >= node:
        return False
    return before.first // node == after.first // node
