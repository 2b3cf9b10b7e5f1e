"""Outer choices: everything that is fixed before stages and layers are searched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poseidon.cost.free_layout import free_layouts, has_free_layouts
from poseidon.cost.layout import Layout, exact_layouts
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.cost.placement import Placement, alike_nodes
from poseidon.cost.refusal import Cause, Refusal
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.training import Recompute, ScheduleName

GIVEN = "given"
"""How the names of choices begin whose stages were given one by one."""


@dataclass(frozen=True)
class OuterChoice:
    """One outer choice: a layout with a micro-batch size, a schedule, chunks and recomputation.

    `micro_batch_size` is that of the first stage; where DP differs between stages so does the micro-batch of a replica
    (`micro_batch_of`).
    """

    layout: Layout
    micro_batch_size: int
    shape: PipelineShape
    recompute: Recompute

    @property
    def dp(self) -> int:
        """Data-parallel degree; of the first stage where it differs between stages (`Layout.is_given`)."""
        return self.layout.dp

    @property
    def tp(self) -> int:
        """TP degree of all stages; 0 where it differs between them."""
        return self.layout.tp

    @property
    def schedule(self) -> str:
        """Name of the pipeline schedule."""
        return self.shape.schedule

    @property
    def num_chunks(self) -> int:
        """Chunks of layers per stage."""
        return self.shape.num_chunks

    @property
    def num_stages(self) -> int:
        """Pipeline stages."""
        return self.shape.num_stages

    @property
    def num_micro_batches(self) -> int:
        """Micro-batches of one pipeline in one iteration."""
        return self.shape.num_micro_batches

    def micro_batch_of(self, placement: Placement) -> int:
        """Sequences of a micro-batch on one replica of a placement: all replicas share D x micro-batch of them."""
        return self.dp * self.micro_batch_size // placement.dp

    @property
    def name(self) -> str:
        """What sets the choice apart, e.g. ``dp4 tp2 mbs1 1f1b``."""
        if self.layout.is_given:
            return self._given_name()
        tp = str(self.tp) if self.tp else self._mixed_tp()
        stages = "" if self.layout.is_exact else f" pp{self.num_stages}"
        chunks = f" x{self.num_chunks}" if self.num_chunks > 1 else ""
        recompute = f" recompute-{self.recompute}" if self.recompute != "none" else ""
        return f"dp{self.dp} tp{tp}{stages} mbs{self.micro_batch_size} {self.schedule}{chunks}{recompute}"

    def _given_name(self) -> str:
        degrees = {placement.dp for placement in self.layout.placements}
        dp = str(self.dp) if len(degrees) == 1 else "-per-stage"
        recompute = f" recompute-{self.recompute}" if self.recompute != "none" else ""
        return (
            f"{GIVEN} dp{dp} tp{self.tp or '-per-stage'} pp{self.num_stages} m{self.num_micro_batches} "
            f"{self.schedule}{recompute}"
        )

    def _mixed_tp(self) -> str:
        if self.layout.shares_devices:
            return "-per-stage"
        return "/".join(str(placement.tp) for placement in self.layout.placements)


@dataclass(frozen=True)
class OuterChoices:
    """All feasible outer choices, in a fixed order, and the candidates that were refused on the way."""

    choices: tuple[OuterChoice, ...]
    refusals: tuple[Refusal, ...]


def outer_choices(experiment: Experiment) -> OuterChoices:
    """Every (DP, TP, micro-batch size, schedule, chunks, recomputation) that the contract allows.

    TP divides the heads (and the key/value heads, or is a multiple) and stays in one node; D x TP divides or is a
    multiple of each node's devices; every device is used unless devices may stay idle; N <= layers (x chunks); D x
    micro-batch divides the global batch.
    """
    pools = alike_nodes(experiment.cluster)
    layouts = free_layouts if has_free_layouts(experiment) else exact_layouts
    choices: dict[str, OuterChoice] = {}
    refusals: list[Refusal] = []
    for layout in layouts(experiment, pools):
        if isinstance(layout, Refusal):
            refusals.append(layout)
            continue
        for item in _of_layout(experiment, layout):
            if isinstance(item, Refusal):
                refusals.append(item)
            else:
                # TP combinations that differ only for types without a stage are one choice.
                choices.setdefault(item.name, item)
    return OuterChoices(tuple(choices.values()), tuple(refusals))


def _of_layout(experiment: Experiment, layout: Layout) -> Iterator[OuterChoice | Refusal]:
    training = experiment.training
    for size in training.micro_batch_sizes:
        sequences = layout.dp * size
        if training.global_batch_size % sequences:
            reason = f"DP {layout.dp} x micro-batch {size} does not divide the global batch"
            yield Refusal(Cause.BATCH, reason, layout.dp, layout.tp)
            continue
        num_micro_batches = training.global_batch_size // sequences
        for schedule, num_chunks in _schedules(experiment):
            shape = PipelineShape(schedule, layout.num_stages, num_micro_batches, num_chunks)
            if refusal := shape_refusal(experiment, shape):
                yield Refusal(Cause.SCHEDULE, refusal, layout.dp, layout.tp)
                continue
            for recompute in recompute_modes(experiment):
                yield OuterChoice(layout, size, shape, recompute)


def _schedules(experiment: Experiment) -> Iterator[tuple[ScheduleName, int]]:
    for schedule in experiment.training.schedules:
        for num_chunks in experiment.training.num_chunks if schedule == "interleaved_1f1b" else (1,):
            yield schedule, num_chunks


def recompute_modes(experiment: Experiment) -> tuple[Recompute, ...]:
    """The recomputation modes to choose from."""
    return experiment.training.recompute_modes


def shape_refusal(experiment: Experiment, shape: PipelineShape) -> str | None:
    """Why a schedule can't run a pipeline of this shape with this model; None if it can."""
    num_layers = experiment.model.num_layers
    if shape.num_chunks == 1:
        return shape.refusal()
    if shape.num_stages < 2:
        return f"{shape.schedule} needs at least 2 stages"
    needed = shape.num_stages * shape.num_chunks
    if needed > num_layers:
        return (
            f"{shape.num_stages} stages of {shape.num_chunks} chunks need {needed} layers; the model has {num_layers}"
        )
    if len(experiment.model.distinct_layer_types) > 1:
        return f"{shape.schedule} with chunks needs layers of one type; the model has dense and MoE layers"
    return shape.refusal()
