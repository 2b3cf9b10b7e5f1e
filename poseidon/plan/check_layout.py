"""Whether a pipeline can exist at all: devices, layers, divisibility, settings, neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from poseidon.inputs.cluster import NodeGroup
from poseidon.inputs.experiment import Experiment
from poseidon.plan.finding import Finding, Verdict
from poseidon.plan.plan import Pipeline, PlannedStage
from poseidon.profile.degrees import tp_refusal
from poseidon.schedule import SCHEDULES


def _finding(check: str, mistakes: Iterator[str], right: str) -> Finding:
    """Wrong with the first mistakes, or right with what was seen."""
    found = list(mistakes)
    if not found:
        return Finding(check, Verdict.RIGHT, right)
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return Finding(check, Verdict.WRONG, "; ".join(found[:3]) + more)


def _node_groups(experiment: Experiment) -> list[NodeGroup]:
    """The group of each node of the cluster."""
    return [group for group in experiment.cluster.nodes for _ in range(group.count)]


def check_devices(experiment: Experiment, pipeline: Pipeline) -> Finding:
    """Devices exist and are used once; stages have one type; TP groups stay in a node; ranks are in order."""
    idle = sum(len(part.devices) for part in pipeline.idle)
    right = f"{pipeline.num_devices} devices, each used once" + (f"; {idle} idle, listed" if idle else "")
    return _finding("devices", _device_mistakes(experiment, pipeline), right)


def _device_mistakes(experiment: Experiment, pipeline: Pipeline) -> Iterator[str]:
    groups = _node_groups(experiment)
    uses: Counter[tuple[int, int]] = Counter()
    next_rank = 0
    for index, stage in enumerate(pipeline.stages):
        devices = [(part.node, device) for part in stage.devices for device in part.devices]
        uses.update(devices)
        if not all(0 <= node < len(groups) and 0 <= device < groups[node].devices for node, device in devices):
            yield f"stage {index} uses a device that the cluster does not have"
            continue
        if any(groups[node].accelerator != stage.accelerator for node, _ in devices):
            yield f"stage {index} has devices that are not {stage.accelerator}"
        if pipeline.is_given and len(devices) % stage.tp:
            yield f"stage {index} has {len(devices)} devices, not a multiple of TP {stage.tp}"
        if not pipeline.is_given and len(devices) != pipeline.dp * stage.tp:
            yield f"stage {index} has {len(devices)} devices, not DP {pipeline.dp} x TP {stage.tp}"
        tp_groups = [devices[first : first + stage.tp] for first in range(0, len(devices), stage.tp)]
        if any(len({node for node, _ in group}) > 1 for group in tp_groups):
            yield f"stage {index} has a TP group that leaves its node"
        if stage.ranks != tuple(range(next_rank, next_rank + len(devices))):
            yield f"stage {index} has ranks out of order"
        next_rank += len(devices)
    if repeated := [device for device, count in uses.items() if count > 1]:
        yield f"device {repeated[0][1]} of node {repeated[0][0]} is used more than once"
    everything = {(node, device) for node, group in enumerate(groups) for device in range(group.devices)}
    idle = {(part.node, device) for part in pipeline.idle for device in part.devices}
    if idle != everything - uses.keys():
        yield f"{len(everything - uses.keys())} devices have no stage, {len(idle)} are listed as idle"
    if idle and not experiment.search.allow_idle:
        yield f"{len(idle)} devices are idle, which the experiment does not allow"


def check_layers(experiment: Experiment, pipeline: Pipeline) -> Finding:
    """Every layer is held once, in order, and no stage (or chunk) is empty."""
    num_layers = experiment.model.num_layers
    return _finding("layers", _layer_mistakes(num_layers, pipeline), f"{num_layers} layers on {pipeline.pp} stages")


def _layer_mistakes(num_layers: int, pipeline: Pipeline) -> Iterator[str]:
    next_layer = 0
    for chunk in range(pipeline.num_chunks):
        for index, stage in enumerate(pipeline.stages):
            if len(stage.layer_ranges) != pipeline.num_chunks:
                yield f"stage {index} has {len(stage.layer_ranges)} chunks, not {pipeline.num_chunks}"
                return
            first, end = stage.layer_ranges[chunk]
            if first != next_layer:
                yield f"stage {index} starts at layer {first}, not {next_layer}"
            if end <= first:
                yield f"stage {index} holds no layer"
            next_layer = end
    if next_layer != num_layers:
        yield f"the stages hold {next_layer} layers, the model has {num_layers}"


def check_settings(experiment: Experiment, pipeline: Pipeline) -> Finding:
    """The batch divides, TP divides the heads, the schedule accepts the shape, and the experiment allows all of it."""
    right = (
        f"DP {pipeline.dp} x micro-batch {pipeline.micro_batch_size} x {pipeline.num_micro_batches} micro-batches "
        f"= global batch {experiment.training.global_batch_size}"
    )
    return _finding("settings", _setting_mistakes(experiment, pipeline), right)


def _setting_mistakes(experiment: Experiment, pipeline: Pipeline) -> Iterator[str]:
    training = experiment.training
    sequences = pipeline.dp * pipeline.micro_batch_size * pipeline.num_micro_batches
    if sequences != training.global_batch_size:
        yield f"DP x micro-batch x micro-batches is {sequences}, not the global batch {training.global_batch_size}"
    for dp in sorted({stage.dp for stage in pipeline.stages}):
        if training.global_batch_size % (pipeline.num_micro_batches * dp):
            yield f"{pipeline.num_micro_batches} micro-batches x DP {dp} do not divide the global batch"
    for size in sorted({pipeline.micro_batch_of(stage) for stage in pipeline.stages}):
        if size not in training.micro_batch_sizes:
            yield f"micro-batch {size} is not one of the experiment's"
    for tp in sorted({stage.tp for stage in pipeline.stages}):
        if reason := tp_refusal(experiment.model, tp):
            yield reason
    if training.recompute not in ("auto", pipeline.recompute):
        yield f"recompute is {pipeline.recompute}, the experiment asks for {training.recompute}"
    yield from _schedule_mistakes(experiment, pipeline)
    yield from _degree_mistakes(experiment, pipeline)
    if experiment.search.assignment == "node":
        yield from _broken_nodes(pipeline)


def _schedule_mistakes(experiment: Experiment, pipeline: Pipeline) -> Iterator[str]:
    name = pipeline.schedule
    if name not in SCHEDULES:
        yield f"schedule {name!r} is not known"
        return
    sizes = (pipeline.pp, pipeline.num_micro_batches, pipeline.num_chunks)
    if reason := SCHEDULES[name].check_shape(*sizes, depths=pipeline.depths):
        yield reason
    if not any(name == allowed for allowed in experiment.training.schedules):
        yield f"schedule {name} is not one of the experiment's"
    if pipeline.num_chunks > 1 and pipeline.num_chunks not in experiment.training.num_chunks:
        yield f"{pipeline.num_chunks} chunks are not one of the experiment's choices"


def _degree_mistakes(experiment: Experiment, pipeline: Pipeline) -> Iterator[str]:
    search = experiment.search
    degrees = {stage.tp for stage in pipeline.stages}
    by_type = {(stage.accelerator, stage.tp) for stage in pipeline.stages}
    if (search.tp == "uniform" or search.target == "megatron") and len(degrees) > 1:
        yield f"TP differs between stages: {sorted(degrees)}"
    if search.tp == "per-type" and len(by_type) > len({accelerator for accelerator, _ in by_type}):
        yield "TP differs between stages of one accelerator"
    for name, fixed, values in (
        ("DP", search.fixed_dp, {stage.dp for stage in pipeline.stages}),
        ("TP", search.fixed_tp, degrees),
        ("PP", search.fixed_pp, {pipeline.pp}),
    ):
        if fixed is not None and values != {fixed}:
            yield f"{name} is {sorted(values)}, not the {fixed} that the experiment fixes"


def _broken_nodes(pipeline: Pipeline) -> Iterator[str]:
    """Assignment by node: the stages of a node follow one another."""
    left: set[int] = set()
    for index, (stage, following) in enumerate(pairwise(pipeline.stages)):
        left |= set(stage.nodes) - set(following.nodes)
        if again := left & set(following.nodes):
            yield f"node {min(again)} is left before stage {index + 1} comes back to it"


def check_neighbours(experiment: Experiment, pipeline: Pipeline) -> Finding:
    """Stages that exchange activations can talk."""
    return _finding("neighbours", _silent_neighbours(experiment, pipeline), "all neighbouring stages can talk")


def _silent_neighbours(experiment: Experiment, pipeline: Pipeline) -> Iterator[str]:
    groups = _node_groups(experiment)
    pairs = list(pairwise(pipeline.stages))
    if pipeline.num_chunks > 1:
        pairs.append((pipeline.stages[-1], pipeline.stages[0]))
    for stage, following in pairs:
        if not all(
            experiment.cluster.can_communicate(groups[a], groups[b])
            for a in _known(stage, groups)
            for b in _known(following, groups)
        ):
            yield f"{stage.accelerator} and {following.accelerator} are neighbours, but their backends cannot talk"


def _known(stage: PlannedStage, groups: list[NodeGroup]) -> list[int]:
    return [node for node in stage.nodes if 0 <= node < len(groups)]
