"""Puts a pipeline on the nodes and devices that have most of what it needs, and works out its moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.outer import recompute_modes
from poseidon.inputs import Experiment
from poseidon.plan import Pipeline, Plan, Verdict
from poseidon.plan.check_layout import check_devices
from poseidon.profile import load_profile
from poseidon.replan.holdings import Holding, Key, PieceBytes, grid_of, holdings
from poseidon.replan.moves import DeviceMoves, moves_of
from poseidon.replan.new_cluster import Node
from poseidon.replan.places import Device, Placed, best_places


@dataclass(frozen=True)
class Candidate:
    """A pipeline on its physical nodes, with its moves."""

    pipeline: Pipeline
    grid: int
    """Pieces that every part is cut into (`holdings`)."""
    moves: tuple[DeviceMoves, ...]
    placed: Placed

    @property
    def moved_bytes(self) -> float:
        """What does not stay where it is."""
        return sum(move.received_bytes + move.loaded_bytes for move in self.moves)


class Chooser:
    """Puts pipelines on the nodes that have most of what they need."""

    def __init__(self, old: Plan, nodes: Sequence[Node], experiment: Experiment) -> None:
        """`experiment` is that of the new cluster, which has the `nodes`."""
        self._old, self._experiment = old, experiment
        self._profile = load_profile(experiment, recompute=recompute_modes(experiment))
        self._now_of = {
            (node.was, was): (number, index)
            for number, node in enumerate(nodes)
            if node.was is not None
            for index, was in enumerate(node.devices)
        }

    def placed(self, pipeline: Pipeline) -> Candidate:
        """The pipeline on its best places; the plan takes as long there."""
        grid = grid_of((self._old.pipeline, pipeline))
        kept = self._kept(grid)
        moved = best_places(pipeline, self._experiment.cluster, self._placed(pipeline, kept, grid))
        finding = check_devices(self._experiment, moved)
        assert finding.verdict is not Verdict.WRONG, finding.detail
        there = self._placed(moved, kept, grid)
        return Candidate(moved, grid, moves_of(there, self._experiment.cluster), there)

    def kept_by_layer(self, candidate: Candidate) -> NDArray[np.float64]:
        """[stage][layer]: bytes that need not move if the layer is on the stage, where the candidate has put it."""
        stages = candidate.pipeline.stages
        kept = np.zeros((len(stages), self._experiment.model.num_layers))
        for index, stage in enumerate(stages):
            for device in [(part.node, number) for part in stage.devices for number in part.devices]:
                self._add_kept(kept[index], candidate.placed, device)
        return kept

    @staticmethod
    def _add_kept(row: NDArray[np.float64], placed: Placed, device: Device) -> None:
        """Adds what one device of a stage would keep of each layer; its shards are the same of every layer."""
        wanted, sizes = placed.wanted[device], placed.piece_bytes[device]
        shards = {state: shard for (part, state), shard in wanted.items() if part >= 0}
        for (part, state), has in placed.kept.get(device, {}).items():
            if part >= 0 and state in shards:
                row[part] += shards[state].overlap(has) * sizes[part, state]

    def _kept(self, grid: int) -> dict[Device, Holding]:
        """What the devices that are left have, by their new names."""
        sharded = self._old.experiment.training.distributed_optimizer
        held = by_device(self._old.pipeline, holdings(self._old.pipeline, sharded=sharded, grid=grid))
        return {self._now_of[was]: holding for was, holding in held.items() if was in self._now_of}

    def _placed(self, pipeline: Pipeline, kept: Mapping[Device, Holding], grid: int) -> Placed:
        sharded = self._experiment.training.distributed_optimizer
        wanted = by_device(pipeline, holdings(pipeline, sharded=sharded, grid=grid))
        sizes = PieceBytes(self._experiment, self._profile, pipeline, grid)
        piece_bytes: dict[Device, Mapping[Key, float]] = {}
        for index, stage in enumerate(pipeline.stages):
            of_stage = sizes.of_stage(index)
            piece_bytes |= {(part.node, device): of_stage for part in stage.devices for device in part.devices}
        return Placed(kept, wanted, piece_bytes)


def by_device(pipeline: Pipeline, held: Sequence[Sequence[Holding]]) -> dict[Device, Holding]:
    """What each device holds, in the order of ranks; `held` is by stage and rank within it."""
    result: dict[Device, Holding] = {}
    for stage, ranks in zip(pipeline.stages, held, strict=True):
        devices = [(part.node, device) for part in stage.devices for device in part.devices]
        result |= dict(zip(devices, ranks, strict=True))
    return result
