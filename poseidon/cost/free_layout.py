"""Layouts whose number of stages is a choice of its own: devices may stay idle, or the TP degree is chosen stage by
stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poseidon.cost.layout import Layout, divisors_of, stages_refusal, uniform_tp
from poseidon.cost.placement import AlikeNodes, Placement
from poseidon.cost.refusal import Cause, Refusal
from poseidon.inputs.experiment import Experiment
from poseidon.profile.degrees import tp_degrees


def has_free_layouts(experiment: Experiment) -> bool:
    """Whether the experiment's space is one of these."""
    per_stage = experiment.search.tp == "per-stage" and not uniform_tp(experiment)
    return experiment.search.allow_idle or per_stage


def free_layouts(experiment: Experiment, pools: Sequence[AlikeNodes]) -> Iterator[Layout | Refusal]:
    """For each DP degree (and TP degree, if it is one for all stages) every number of stages that can be had."""
    devices = sum(pool.num_devices for pool in pools)
    fixed = experiment.search.fixed_dp
    degrees = (
        [fixed]
        if fixed is not None
        else [d for d in divisors_of(experiment.training.global_batch_size) if d <= devices]
    )
    for tp in _common_tps(experiment, pools):
        for dp in degrees:
            yield from _layouts(experiment, pools, dp, tp)


def _common_tps(experiment: Experiment, pools: Sequence[AlikeNodes]) -> list[int]:
    """The TP degrees of all stages; [0] where every stage has its own."""
    if experiment.search.tp != "uniform" and not uniform_tp(experiment):
        return [0]
    accelerators = {pool.group.accelerator for pool in pools}
    degrees = {tp for name in accelerators for tp in tp_degrees(experiment.model, experiment.cluster, name)}
    fixed = experiment.search.fixed_tp
    return sorted(tp for tp in degrees if fixed in (None, tp))


def _layouts(experiment: Experiment, pools: Sequence[AlikeNodes], dp: int, tp: int) -> Iterator[Layout | Refusal]:
    placements = tuple(_placements(experiment, pools, dp, tp))
    label = f"DP {dp}, TP {tp or 'per stage'}"
    if not placements:
        yield Refusal(Cause.NODES, f"no node holds a stage of {label}", dp, tp)
        return
    counts = _stage_counts(experiment, pools, placements)
    accepted = [count for count in counts if stages_refusal(experiment, count, label) is None]
    if not accepted:
        reason = stages_refusal(experiment, min(counts), label) if counts else f"{label} does not use every device"
        yield Refusal(Cause.STAGES, reason or f"{label} has no number of stages", dp, tp)
    for num_stages in accepted:
        yield Layout(dp, tp, num_stages, placements, is_exact=False)


def _placements(experiment: Experiment, pools: Sequence[AlikeNodes], dp: int, tp: int) -> Iterator[Placement]:
    """A kind for each group of alike nodes and each TP degree, with as many stages as its devices hold."""
    numbers: dict[str, int] = {}
    names = [pool.group.accelerator for pool in pools]
    for pool in pools:
        accelerator, per_node = pool.group.accelerator, pool.group.devices
        number = numbers[accelerator] = numbers.get(accelerator, -1) + 1
        label = accelerator if names.count(accelerator) == 1 else f"{accelerator}.{number}"
        for degree in tp_degrees(experiment.model, experiment.cluster, accelerator):
            size = dp * degree
            if per_node % degree or tp not in (0, degree) or experiment.search.fixed_tp not in (None, degree):
                continue
            if size <= per_node and (experiment.search.allow_idle or per_node % size == 0):
                q, count = per_node // size, len(pool.nodes) * (per_node // size)
            elif size > per_node and size % per_node == 0:
                q, count = 1, len(pool.nodes) // (size // per_node)
            else:
                continue
            if count:
                yield Placement(f"{label}/tp{degree}", accelerator, dp, degree, count, q, (pool,))


def _stage_counts(experiment: Experiment, pools: Sequence[AlikeNodes], placements: Sequence[Placement]) -> list[int]:
    """Numbers of stages that the devices can be cut into, ascending: any up to the most where devices may stay idle."""
    by_pool: dict[tuple[int, ...], list[Placement]] = {}
    for placement in placements:
        by_pool.setdefault(placement.parts[0].nodes, []).append(placement)
    if experiment.search.allow_idle:
        most = sum(max(placement.num_stages for placement in kinds) for kinds in by_pool.values())
        return list(range(1, min(most, experiment.model.num_layers) + 1))
    counts = {0}
    for pool in pools:
        kinds = by_pool.get(pool.nodes, [])
        own = _exact_counts(pool.num_devices, [placement.devices_per_stage for placement in kinds])
        counts = {a + b for a in counts for b in own if a + b <= experiment.model.num_layers}
    return sorted(counts)


def _exact_counts(num_devices: int, sizes: Sequence[int]) -> set[int]:
    """Numbers of stages of the given sizes that use exactly `num_devices` devices (nodes aside)."""
    reachable: list[set[int]] = [{0}]
    for total in range(1, num_devices + 1):
        reachable.append({count + 1 for size in sizes if size <= total for count in reachable[total - size]})
    return reachable[num_devices]
