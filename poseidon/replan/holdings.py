"""What every device of a pipeline keeps from one iteration to the next: shards of weights and of optimizer state.

A *part* is a layer, the embedding or the head. TP cuts each of a part's matrices into equal ranges, so a shard is a
range of the part, counted in `grid` equal pieces; a distributed optimizer cuts the range of a TP rank once more, into
one for each DP rank. The gradients of an iteration are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import lcm

from poseidon.cost.memory import state_bytes
from poseidon.cost.part_rows import PartRows, part_rows
from poseidon.inputs import Experiment
from poseidon.plan import Pipeline, PlannedStage
from poseidon.profile import Profile
from poseidon.profile.profile import Row, RowKey

EMBEDDING, HEAD = -1, -2
"""Parts that are no layers."""


class State(StrEnum):
    """What is kept of a part."""

    WEIGHTS = "weights"
    OPTIMIZER = "optimizer"


Key = tuple[int, State]
"""(part, state)."""


@dataclass(frozen=True)
class Shard:
    """A range of a part, in pieces of 1 / grid of it."""

    first: int
    end: int

    @property
    def width(self) -> int:
        """Pieces in it."""
        return self.end - self.first

    def overlap(self, other: Shard) -> int:
        """Pieces that are in both."""
        return max(0, min(self.end, other.end) - max(self.first, other.first))


Holding = Mapping[Key, Shard]
"""All that one device keeps."""


def grid_of(pipelines: Iterable[Pipeline]) -> int:
    """The fewest pieces to cut parts into so that every shard of these pipelines is a whole number of them."""
    return lcm(*(stage.num_devices for pipeline in pipelines for stage in pipeline.stages))


def holdings(pipeline: Pipeline, *, sharded: bool, grid: int) -> list[list[Holding]]:
    """[stage][rank within it]; `sharded`: with a distributed optimizer."""
    return [
        [_holding(parts_of(pipeline, index), stage, rank, sharded, grid) for rank in range(stage.num_devices)]
        for index, stage in enumerate(pipeline.stages)
    ]


def parts_of(pipeline: Pipeline, index: int) -> tuple[int, ...]:
    """The layers of a stage; the first stage also has the embedding, the last one the head."""
    layers = [layer for first, end in pipeline.stages[index].layer_ranges for layer in range(first, end)]
    if index == 0:
        layers.append(EMBEDDING)
    if index == pipeline.pp - 1:
        layers.append(HEAD)
    return tuple(layers)


def _holding(parts: tuple[int, ...], stage: PlannedStage, rank: int, sharded: bool, grid: int) -> Holding:
    """Ranks are in the order TP, DP."""
    tp_rank, dp_rank = rank % stage.tp, rank // stage.tp
    width = grid // stage.tp
    weights = Shard(tp_rank * width, (tp_rank + 1) * width)
    optimizer = weights
    if sharded:
        part = width // stage.dp
        optimizer = Shard(weights.first + dp_rank * part, weights.first + (dp_rank + 1) * part)
    shards = {State.WEIGHTS: weights, State.OPTIMIZER: optimizer}
    return {(part, state): shard for part in parts for state, shard in shards.items()}


class PieceBytes:
    """Bytes of one piece of a part, on the stages of one pipeline."""

    def __init__(self, experiment: Experiment, profile: Profile, pipeline: Pipeline, grid: int) -> None:
        """The profile must have the rows of the pipeline's stages."""
        self._experiment, self._profile, self._pipeline, self._grid = experiment, profile, pipeline, grid
        model, types = experiment.model, experiment.model.distinct_layer_types
        self._type_of_layer = [types.index(name) for name in model.layer_types]

    def of_stage(self, index: int) -> Mapping[Key, float]:
        """For everything that a stage keeps, and for every layer that it might keep."""
        pipeline = self._pipeline
        stage = pipeline.stages[index]
        at = RowKey(stage.accelerator, stage.tp, pipeline.micro_batch_of(stage))
        recompute = next(mode for mode in self._experiment.training.recompute_modes if mode == pipeline.recompute)
        rows = part_rows(self._profile, self._experiment, at, recompute)
        layers = range(self._experiment.model.num_layers)
        return dict(self._sizes(rows, (*layers, *parts_of(pipeline, index)), stage.tp))

    def _sizes(self, rows: PartRows, parts: tuple[int, ...], tp: int) -> Iterator[tuple[Key, float]]:
        pieces = self._grid // tp
        for part in parts:
            state = state_bytes(self._row(rows, part).weight_bytes, 1, self._experiment.training)
            yield (part, State.WEIGHTS), state.weights / pieces
            yield (part, State.OPTIMIZER), state.optimizer / pieces

    def _row(self, rows: PartRows, part: int) -> Row:
        if part == EMBEDDING:
            return rows.embedding
        if part == HEAD:
            return rows.head_alone if self._pipeline.pp == 1 else rows.head
        return rows.layers[self._type_of_layer[part]]


def part_name(part: int) -> str:
    """What a part is called."""
    return {EMBEDDING: "embedding", HEAD: "head"}.get(part, f"layer {part}")
