"""The moves for programs: ``poseidon.moves/1`` (docs/replan.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poseidon.plan import Pipeline
from poseidon.replan.holdings import part_name
from poseidon.replan.layer_moves import layer_moves
from poseidon.replan.moves import DeviceMoves, Piece, Transfer
from poseidon.replan.places import Device
from poseidon.replan.replan import Replanned

SCHEMA = "poseidon.moves/1"


def moves_to_json(replanned: Replanned) -> dict[str, Any]:
    """What every device keeps, receives and loads; bytes are whole numbers."""
    old, new = replanned.old, replanned.new
    old_ranks = _ranks(old.pipeline)
    return {
        "schema": SCHEMA,
        "old_iteration_time_ms": old.pipeline.iteration_time_ms,
        "new_iteration_time_ms": new.pipeline.iteration_time_ms,
        "kept_bytes": round(replanned.kept_bytes),
        "received_bytes": round(replanned.received_bytes),
        "loaded_bytes": round(replanned.loaded_bytes),
        "transfers_ms": replanned.transfers_ms,
        "planning_seconds": new.search.seconds,
        "placing_seconds": replanned.placing_s,
        "candidates": replanned.num_candidates,
        "pieces": replanned.grid,
        "nodes": [
            {"node": number, "old_node": node.was, "old_devices": list(node.devices) if node.was is not None else None}
            for number, node in enumerate(replanned.nodes)
        ],
        "layers": [
            {
                "parts": [part_name(part) for part in move.parts],
                "old_stage": move.old_stage,
                "old_ranks": list(old.pipeline.stages[move.old_stage].ranks),
                "new_stage": move.new_stage,
                "new_ranks": list(new.pipeline.stages[move.new_stage].ranks),
                "kept_bytes": round(move.kept_bytes),
                "received_bytes": round(move.received_bytes),
                "loaded_bytes": round(move.loaded_bytes),
            }
            for move in layer_moves(replanned)
        ],
        "devices": [_device(rank, moves, replanned, old_ranks) for rank, moves in enumerate(replanned.moves)],
    }


def _ranks(pipeline: Pipeline) -> dict[Device, int]:
    """The rank of every device in use."""
    devices = [(part.node, device) for stage in pipeline.stages for part in stage.devices for device in part.devices]
    return {device: rank for rank, device in enumerate(devices)}


def _device(rank: int, moves: DeviceMoves, replanned: Replanned, old_ranks: dict[Device, int]) -> dict[str, Any]:
    node, device = moves.device
    return {
        "rank": rank,
        "node": node,
        "device": device,
        "old_rank": _old_rank(moves.device, replanned, old_ranks),
        "keep": _pieces(moves.kept),
        "receive": [_received(transfer, replanned, old_ranks) for transfer in moves.received],
        "load": _pieces(moves.loaded),
    }


def _old_rank(device: Device, replanned: Replanned, old_ranks: dict[Device, int]) -> int | None:
    node = replanned.nodes[device[0]]
    return None if node.was is None else old_ranks.get((node.was, node.devices[device[1]]))


def _received(transfer: Transfer, replanned: Replanned, old_ranks: dict[Device, int]) -> dict[str, Any]:
    node, device = transfer.source
    source = {"node": node, "device": device, "old_rank": _old_rank(transfer.source, replanned, old_ranks)}
    return {**_piece(transfer.piece), "from": source}


def _pieces(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    return [_piece(piece) for piece in pieces]


def _piece(piece: Piece) -> dict[str, Any]:
    return {
        "part": part_name(piece.part),
        "state": str(piece.state),
        "range": [piece.shard.first, piece.shard.end],
        "bytes": round(piece.num_bytes),
    }
