"""The memory limit of a stage in layers, for every place in the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.chunk_counts import chunk_counts
from poseidon.cost.memory import NOTHING, ROUNDING_BYTES, PartMemory
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.cost.problem import places

Limits = tuple[tuple[int, ...], ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DeviceMemory:
    """What the parts of a model take on one device of a kind, and what is free for them, in bytes."""

    layers: tuple[PartMemory, ...]
    """One for each layer type."""
    embedding: PartMemory
    head: PartMemory
    head_alone: PartMemory
    """The head on the only stage, where a tied output matrix is the embedding."""
    free_bytes: float

    def extras(self, stage: int, num_stages: int) -> tuple[PartMemory, PartMemory]:
        """What the stage holds before its first and after its last layer."""
        first = self.embedding if stage == 0 else NOTHING
        if stage < num_stages - 1:
            return first, NOTHING
        return first, self.head_alone if num_stages == 1 else self.head


def layer_limits(memory: DeviceMemory, shape: PipelineShape, layer_types: Sequence[int], most_depth: int = 1) -> Limits:
    """Most layers that fit at each place; shape [places][1], or [places][num_layers] (by first layer) in a mixed stack.

    The places are the stages; where links may have depths up to `most_depth`, each stage with each of its warm-ups.
    `layer_types` has the type of each layer, as an index into `memory.layers`. 0: the kind can't serve there. With
    chunks the limit holds however the stage's layers are split over its chunks (layers of one type only).
    """
    if shape.num_chunks > 1:
        return tuple((_chunked_limit(memory, shape, stage, len(layer_types)),) for stage in range(shape.num_stages))
    stages, in_flight = _held(shape, most_depth)
    room, transients = _room(memory, stages, in_flight), _transients(memory, stages)
    if len(memory.layers) == 1:
        return _uniform_limits(memory.layers[0], in_flight, room, transients, len(layer_types))
    return _mixed_limits(memory.layers, in_flight, room, transients, np.array(layer_types))


def _held(shape: PipelineShape, most_depth: int) -> tuple[NDArray[np.int64], Floats]:
    """Stage and in-flight micro-batches of each place."""
    if most_depth == 1:
        return np.arange(shape.num_stages), np.array(shape.warmup_forwards(), dtype=np.float64)
    at = places(shape.num_stages, most_depth)
    held = [min(place.warmup, shape.num_micro_batches) for place in at]
    return np.array([place.stage for place in at]), np.array(held, dtype=np.float64)


def _room(memory: DeviceMemory, stages: NDArray[np.int64], in_flight: Floats) -> Floats:
    """Bytes left for layers at each place after embedding and head, which keep activations like a layer."""
    room = np.full(len(in_flight), memory.free_bytes + ROUNDING_BYTES)
    num_stages = int(stages[-1]) + 1
    for stage in {0, num_stages - 1}:
        here = stages == stage
        for part in memory.extras(stage, num_stages):
            room[here] -= part.state_bytes + in_flight[here] * part.activation_bytes
    return room


def _transients(memory: DeviceMemory, stages: NDArray[np.int64]) -> Floats:
    """The largest transient of embedding and head at each place; a stage's is the largest of all of its parts'."""
    transients, num_stages = np.zeros(len(stages)), int(stages[-1]) + 1
    for stage in {0, num_stages - 1}:
        transients[stages == stage] = max(part.recomputed_bytes for part in memory.extras(stage, num_stages))
    return transients


def _uniform_limits(layer: PartMemory, in_flight: Floats, room: Floats, transients: Floats, num_layers: int) -> Limits:
    per_layer = layer.state_bytes + in_flight * layer.activation_bytes
    room = np.maximum(room - np.maximum(transients, layer.recomputed_bytes), 0.0)
    most = np.full(len(room), float(num_layers))
    fitting = np.divide(room, per_layer, out=most.copy(), where=per_layer > 0)
    return tuple((int(limit),) for limit in np.minimum(fitting, most))


def _mixed_limits(
    layers: Sequence[PartMemory],
    in_flight: Floats,
    room: Floats,
    transients: Floats,
    layer_types: NDArray[np.int64],
) -> Limits:
    """For each first layer a: the most layers a, a + 1, ... that fit, with the largest recomputation among them."""
    state = np.array([part.state_bytes for part in layers])[layer_types]
    activation = np.array([part.activation_bytes for part in layers])[layer_types]
    recomputed = np.array([part.recomputed_bytes for part in layers])[layer_types]
    known: dict[tuple[float, float, float], tuple[int, ...]] = {}
    limits = []
    for key in zip(in_flight.tolist(), room.tolist(), transients.tolist(), strict=True):
        if key not in known:
            per_layer = state + key[0] * activation
            known[key] = _limits_by_first_layer(per_layer, np.maximum(recomputed, key[2]), key[1])
        limits.append(known[key])
    return tuple(limits)


def _limits_by_first_layer(per_layer: Floats, recomputed: Floats, room: float) -> tuple[int, ...]:
    num_layers = len(per_layer)
    first = np.arange(num_layers)
    before = np.concatenate(([0.0], np.cumsum(per_layer)))
    best = np.zeros(num_layers, dtype=np.int64)
    for largest in np.unique(recomputed):
        # Layers up to the next one that recomputes more than `largest`.
        larger = np.concatenate((np.flatnonzero(recomputed > largest), [num_layers]))
        run = larger[np.searchsorted(larger, first)] - first
        fitting = np.searchsorted(before, before[:-1] + (room - largest), side="right") - 1 - first
        best = np.maximum(best, np.minimum(run, fitting))
    return tuple(int(limit) for limit in np.clip(best, 0, num_layers - first))


def _chunked_limit(memory: DeviceMemory, shape: PipelineShape, stage: int, num_layers: int) -> int:
    """Safe for every split: V chunks hold one layer each, the others lie in the chunk that counts most at that
    moment."""
    num_warmup = shape.warmup_forwards()[stage]
    counts = chunk_counts(num_warmup, shape.num_stages, shape.num_micro_batches, shape.num_chunks)
    layer = memory.layers[0]
    first, last = memory.extras(stage, shape.num_stages)
    transient = max(part.recomputed_bytes for part in (layer, first, last))
    room = memory.free_bytes + ROUNDING_BYTES - transient - first.state_bytes - last.state_bytes
    most, total = counts.max(axis=1), counts.sum(axis=1)
    rooms = room - counts[:, 0] * first.activation_bytes - counts[:, -1] * last.activation_bytes
    rooms = rooms - layer.activation_bytes * (total - shape.num_chunks * most)
    limit = float(np.min(rooms / (layer.state_bytes + layer.activation_bytes * most)))
    return min(int(limit), num_layers) if limit >= shape.num_chunks else 0
