"""The moves of whole layers: from which stage to which, and how much of that must travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.plan import Pipeline
from poseidon.replan.holdings import parts_of
from poseidon.replan.moves import DeviceMoves
from poseidon.replan.replan import Replanned


@dataclass(frozen=True)
class LayerMove:
    """Parts that were on one stage and are on one stage now; bytes are those of all devices of the new stage."""

    parts: tuple[int, ...]
    old_stage: int
    new_stage: int
    kept_bytes: float
    received_bytes: float
    loaded_bytes: float

    @property
    def moves(self) -> bool:
        """Whether anything of it moves."""
        return self.received_bytes + self.loaded_bytes > 0


def layer_moves(replanned: Replanned) -> tuple[LayerMove, ...]:
    """All parts, in the order of the new stages."""
    pipeline = replanned.new.pipeline
    stage_of = _stage_of_part(replanned.old.pipeline)
    by_device = {moves.device: moves for moves in replanned.moves}
    result = []
    for index, stage in enumerate(pipeline.stages):
        groups: dict[int, list[int]] = {}
        for part in parts_of(pipeline, index):
            groups.setdefault(stage_of[part], []).append(part)
        totals = _totals([by_device[part.node, device] for part in stage.devices for device in part.devices])
        for old_stage, parts in groups.items():
            kept, received, loaded = (sum(totals[part][kind] for part in parts) for kind in range(3))
            result.append(LayerMove(tuple(sorted(parts)), old_stage, index, kept, received, loaded))
    return tuple(result)


def _totals(moves: Sequence[DeviceMoves]) -> dict[int, list[float]]:
    """Bytes kept, received and loaded of each part, on some devices together."""
    totals: dict[int, list[float]] = {}
    for device in moves:
        received = [transfer.piece for transfer in device.received]
        for kind, pieces in enumerate((device.kept, received, device.loaded)):
            for piece in pieces:
                totals.setdefault(piece.part, [0.0, 0.0, 0.0])[kind] += piece.num_bytes
    return totals


def _stage_of_part(pipeline: Pipeline) -> dict[int, int]:
    return {part: index for index in range(pipeline.pp) for part in parts_of(pipeline, index)}
