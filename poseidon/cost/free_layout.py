"""Layouts whose number of stages is a choice of its own: with idle devices, or with a TP degree for each stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from poseidon.cost.layout import Layout, divisors_of, stages_refusal, uniform_tp
from poseidon.cost.placement import AlikeNodes, Placement
from poseidon.cost.refusal import Cause, Refusal
from poseidon.inputs.experiment import Experiment
from poseidon.profile.degrees import tp_degrees

Degrees = Mapping[str, tuple[int, ...]]
"""The TP degrees that the stages of each accelerator may choose from."""


def has_free_layouts(experiment: Experiment) -> bool:
    """Whether the experiment's space is one of these."""
    per_stage = experiment.search.tp == "per-stage" and not uniform_tp(experiment)
    return experiment.search.allow_idle or per_stage


def free_layouts(experiment: Experiment, pools: Sequence[AlikeNodes]) -> Iterator[Layout | Refusal]:
    """For each DP degree and choice of TP degrees every number of stages that can be had."""
    devices = sum(pool.num_devices for pool in pools)
    fixed = experiment.search.fixed_dp
    divisors = divisors_of(experiment.training.global_batch_size)
    dp_degrees = [fixed] if fixed is not None else [dp for dp in divisors if dp <= devices]
    for degrees in _degrees(experiment, pools):
        for dp in dp_degrees:
            yield from _layouts(experiment, pools, dp, degrees)


def _degrees(experiment: Experiment, pools: Sequence[AlikeNodes]) -> Iterator[Degrees]:
    """One degree for all stages, one for each accelerator, or all of them for every stage."""
    fixed = experiment.search.fixed_tp
    names = list(dict.fromkeys(pool.group.accelerator for pool in pools))
    allowed = {
        name: tuple(tp for tp in tp_degrees(experiment.model, experiment.cluster, name) if fixed in (None, tp))
        for name in names
    }
    if uniform_tp(experiment):
        for tp in sorted({tp for degrees in allowed.values() for tp in degrees}):
            yield dict.fromkeys(names, (tp,))
    elif experiment.search.tp == "per-type":
        for combination in product(*(allowed[name] for name in names)):
            yield {name: (tp,) for name, tp in zip(names, combination, strict=True)}
    else:
        yield allowed


def _layouts(
    experiment: Experiment, pools: Sequence[AlikeNodes], dp: int, degrees: Degrees
) -> Iterator[Layout | Refusal]:
    used = {tp for choice in degrees.values() for tp in choice}
    tp = used.pop() if len(used) == 1 else 0
    placements = tuple(_placements(experiment, pools, dp, degrees))
    label = f"DP {dp}, TP {tp or 'mixed'}"
    if not placements:
        yield Refusal(Cause.NODES, f"no node holds a stage of {label}", dp, tp)
        return
    counts = _stage_counts(experiment, pools, placements)
    accepted = [count for count in counts if stages_refusal(experiment, count, label) is None]
    if not accepted:
        yield Refusal(Cause.STAGES, f"{label} allows no number of stages", dp, tp, min(counts, default=0))
    for num_stages in accepted:
        yield Layout(dp, tp, num_stages, placements, is_exact=False)


def _placements(experiment: Experiment, pools: Sequence[AlikeNodes], dp: int, degrees: Degrees) -> Iterator[Placement]:
    """A kind for each group of alike nodes and each TP degree, with as many stages as its devices hold."""
    names = [pool.group.accelerator for pool in pools]
    for index, pool in enumerate(pools):
        name = names[index]
        label = name if names.count(name) == 1 else f"{name}.{names[:index].count(name)}"
        for tp in degrees[name]:
            count, per_node = _stages_of(pool, dp * tp, tp, experiment.search.allow_idle)
            if count:
                yield Placement(f"{label}/tp{tp}", name, dp, tp, count, per_node, (pool,))


def _stages_of(pool: AlikeNodes, size: int, tp: int, allow_idle: bool) -> tuple[int, int]:
    """How many stages of `size` devices the nodes hold, and how many a node; 0 where none."""
    devices = pool.group.devices
    if devices % tp:
        return 0, 1
    if size <= devices and (allow_idle or devices % size == 0):
        return len(pool.nodes) * (devices // size), devices // size
    if size > devices and size % devices == 0:
        return len(pool.nodes) // (size // devices), 1
    return 0, 1


def _stage_counts(experiment: Experiment, pools: Sequence[AlikeNodes], placements: Sequence[Placement]) -> list[int]:
    """Numbers of stages that the devices can be cut into, ascending: any up to the most where devices may be idle."""
    num_layers = experiment.model.num_layers
    by_pool: dict[int, list[Placement]] = {}
    for placement in placements:
        by_pool.setdefault(placement.parts[0].nodes[0], []).append(placement)
    if experiment.search.allow_idle:
        most = sum(max(placement.num_stages for placement in kinds) for kinds in by_pool.values())
        return list(range(1, min(most, num_layers) + 1))
    counts = {0}
    for pool in pools:
        sizes = [placement.devices_per_stage for placement in by_pool.get(pool.nodes[0], [])]
        own = _exact_counts(pool.num_devices, sizes, num_layers)
        counts = {a + b for a in counts for b in own if a + b <= num_layers}
    return sorted(counts)


def _exact_counts(num_devices: int, sizes: Sequence[int], most: int) -> set[int]:
    """Numbers of stages of the given sizes, at most `most`, that use exactly `num_devices` devices (nodes aside)."""
    if not sizes or num_devices > most * max(sizes):
        return set()
    reachable: list[set[int]] = [{0}]
    for total in range(1, num_devices + 1):
        before = (reachable[total - size] for size in sizes if size <= total)
        reachable.append({count + 1 for counts in before for count in counts if count < most})
    return reachable[num_devices]
