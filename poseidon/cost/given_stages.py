"""Outer choices from stages that are given one by one: DP and TP may differ from stage to stage.

All stages work on the same micro-batches: one of B sequences is shared out over the D_i replicas of stage i, B / D_i
sequences each. Every stage computes it in its own time, and a boundary between stages moves the whole of it
(`Communication`), so the pipeline is timed like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poseidon.cost.layout import Layout
from poseidon.cost.outer import OuterChoice
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.cost.placement import AlikeNodes, Placement
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.training import Recompute, ScheduleName


@dataclass(frozen=True)
class GivenStage:
    """A stage of D x TP devices from nodes that are alike."""

    nodes: AlikeNodes
    dp: int
    tp: int

    @property
    def num_devices(self) -> int:
        """D x TP."""
        return self.dp * self.tp


@dataclass(frozen=True)
class GivenPipeline:
    """A choice with the kind (index of its layout's placement) of each stage, in pipeline order."""

    choice: OuterChoice
    kinds: tuple[int, ...]


def given_pipeline(
    experiment: Experiment,
    pools: Sequence[AlikeNodes],
    stages: Sequence[GivenStage],
    num_micro_batches: int,
    schedule: ScheduleName,
    recompute: Recompute,
) -> GivenPipeline | str:
    """The outer choice in which exactly these stages may be had, or why there is none.

    `pools` are the cluster's nodes (`alike_nodes`). The global batch must divide by micro-batches x D of every stage.
    """
    for stage in stages:
        if experiment.training.global_batch_size % (num_micro_batches * stage.dp):
            return f"{num_micro_batches} micro-batches x DP {stage.dp} do not divide the global batch"
    distinct = tuple(dict.fromkeys(stages))
    placements = tuple(_placements(pools, distinct))
    degrees = {stage.tp for stage in stages}
    tp = degrees.pop() if len(degrees) == 1 else 0
    layout = Layout(stages[0].dp, tp, len(stages), placements, is_exact=False, is_given=True)
    size = experiment.training.global_batch_size // (num_micro_batches * stages[0].dp)
    shape = PipelineShape(schedule, len(stages), num_micro_batches)
    if refusal := shape.refusal():
        return refusal
    choice = OuterChoice(layout, size, shape, recompute)
    return GivenPipeline(choice, tuple(distinct.index(stage) for stage in stages))


def _placements(pools: Sequence[AlikeNodes], stages: Iterable[GivenStage]) -> Iterable[Placement]:
    """A kind for each distinct stage, with as many stages as its nodes hold."""
    names = [pool.group.accelerator for pool in pools]
    for stage in stages:
        index = pools.index(stage.nodes)
        name, per_node = names[index], max(1, stage.nodes.group.devices // stage.num_devices)
        label = name if names.count(name) == 1 else f"{name}.{names[:index].count(name)}"
        count = stage.nodes.num_devices // stage.num_devices
        full_name = f"{label}/dp{stage.dp}tp{stage.tp}"
        yield Placement(full_name, name, stage.dp, stage.tp, count, per_node, (stage.nodes,))
