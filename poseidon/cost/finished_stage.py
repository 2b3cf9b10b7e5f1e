"""The exact memory of the stages of a finished plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.chunk_counts import chunk_counts
from poseidon.cost.memory import StageMemory, StateBytes, memory_budget, state_bytes
from poseidon.cost.outer import OuterChoice
from poseidon.cost.part_rows import PartRows
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.cost.placement import Placement
from poseidon.inputs.experiment import Experiment
from poseidon.profile.profile import Row
from poseidon.schedule import Order, in_flight, peak_in_flight


@dataclass(frozen=True)
class FinishedStage:
    """A stage of a plan: its kind, and for each chunk its layers as (first, end), end excluded."""

    placement: Placement
    layer_ranges: tuple[tuple[int, int], ...]


def finished_memories(
    builder: ProblemBuilder, choice: OuterChoice, stages: Sequence[FinishedStage], order: Order | None = None
) -> tuple[StageMemory, ...]:
    """Memory of one device of each stage, in pipeline order.

    In-flight activations are those of `order` (default: the schedule's own), counted chunk by chunk.
    """
    experiment = builder.experiment
    parts = [
        _stage_rows(experiment, builder.rows(choice, stage.placement), stages, index)
        for index, stage in enumerate(stages)
    ]
    weights = [[sum(row.activation_bytes for row in chunk) for chunk in chunks] for chunks in parts]
    if order is None:
        peaks = [_peak(choice.shape, index, chunk_bytes) for index, chunk_bytes in enumerate(weights)]
        held = [count / choice.num_chunks for count in choice.shape.warmup_forwards()]
    else:
        peaks, held = list(peak_in_flight(order, weights)), list(in_flight(order))
    return tuple(
        _stage_memory(experiment, stage.placement, rows, peak, count)
        for stage, rows, peak, count in zip(stages, parts, peaks, held, strict=True)
    )


def _stage_rows(experiment: Experiment, rows: PartRows, stages: Sequence[FinishedStage], index: int) -> list[list[Row]]:
    """For each chunk of a stage the rows of everything that it holds."""
    model = experiment.model
    types = [model.distinct_layer_types.index(name) for name in model.layer_types]
    chunks = [[rows.layers[types[layer]] for layer in range(first, end)] for first, end in stages[index].layer_ranges]
    if index == 0:
        chunks[0].append(rows.embedding)
    if index == len(stages) - 1:
        chunks[-1].append(rows.head_alone if len(stages) == 1 else rows.head)
    return chunks


def _peak(shape: PipelineShape, stage: int, chunk_bytes: Sequence[float]) -> float:
    """Most bytes of activations held at once, in the schedule's own order."""
    num_warmup = shape.warmup_forwards()[stage]
    if shape.num_chunks == 1:
        return num_warmup * chunk_bytes[0]
    counts = chunk_counts(num_warmup, shape.num_stages, shape.num_micro_batches, shape.num_chunks)
    return float(np.max(counts @ np.array(chunk_bytes)))


def _stage_memory(
    experiment: Experiment, placement: Placement, chunks: list[list[Row]], peak: float, held: float
) -> StageMemory:
    training = experiment.training
    rows = [row for chunk in chunks for row in chunk]
    states = [state_bytes(row.weight_bytes, placement.dp, training) for row in rows]
    accelerator = experiment.cluster.accelerators[placement.accelerator]
    budget = memory_budget(accelerator, training, experiment.search.max_memory_fraction)
    state = StateBytes(
        sum(s.weights for s in states), sum(s.gradients for s in states), sum(s.optimizer for s in states)
    )
    return StageMemory(
        weights_bytes=state.weights,
        gradients_bytes=state.gradients,
        optimizer_bytes=state.optimizer,
        activations_bytes=peak,
        recomputed_bytes=max((row.recomputed_bytes for row in rows), default=0.0),
        reserve_bytes=budget.reserve_bytes,
        limit_bytes=budget.limit_bytes,
        in_flight=held,
    )
