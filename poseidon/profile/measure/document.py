"""The profile file (`poseidon.profile/1`) of finished cells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from poseidon.inputs.model import Model
from poseidon.profile.file import SCHEMA
from poseidon.profile.measure.cells import AllReduceCell, Cell, ComputeCell, TransferCell
from poseidon.profile.measure.job import MeasureJob
from poseidon.profile.measure.results import ComputeResult, MessageResult, NoRoom, Result


def model_sha256(model: Model) -> str:
    """A hash of all of a model's shapes."""
    return hashlib.sha256(model.model_dump_json().encode()).hexdigest()


def profile_document(
    job: MeasureJob, cells: Sequence[Cell], results: Mapping[str, Result], taken: Mapping[str, Any]
) -> dict[str, Any]:
    """The file's content; cells without room have no row, and are listed in `taken`."""
    done = [(cell, results[str(cell)]) for cell in cells]
    compute = [(cell, result) for cell, result in done if isinstance(cell, ComputeCell)]
    rows = {
        name: [
            _compute_row(job.accelerator, cell, result)
            for cell, result in compute
            if isinstance(result, ComputeResult) and (cell.part == name or (name == "layers" and cell.is_layer))
        ]
        for name in ("layers", "embedding", "head")
    }
    messages = [(cell, result) for cell, result in done if isinstance(result, MessageResult)]
    no_room = [f"{cell}: {result.reason}" for cell, result in done if isinstance(result, NoRoom)]
    return {
        "schema": SCHEMA,
        "model": job.model.name,
        "seq_length": job.seq_length,
        "precision": job.precision,
        "source": source_of([taken]),
        **({"sequence_parallel": job.sequence_parallel} if max(job.tp_degrees) > 1 else {}),
        "taken": [{**taken, "no_room": no_room}],
        **rows,
        "transfers": [
            {"from": job.accelerator, "to": job.accelerator, **_message(cell.num_bytes, result)}
            for cell, result in messages
            if isinstance(cell, TransferCell)
        ],
        "all_reduce": [
            {"accelerator": job.accelerator, "tp": cell.tp, "dp": cell.dp, **_message(cell.num_bytes, result)}
            for cell, result in messages
            if isinstance(cell, AllReduceCell)
        ],
    }


def source_of(taken: Sequence[Mapping[str, Any]]) -> str:
    """One sentence for people: how the numbers were obtained, on what, when."""
    runs = dict.fromkeys(
        f"{run['accelerator']} on {run['host']} ({run['device_name']}, {run['device']}, {run['processes']} processes, "
        f"torch {run['torch']}) {run['finished']}"
        for run in taken
    )
    return f"measured by poseidon profile: {'; '.join(runs)}"


def _compute_row(accelerator: str, cell: ComputeCell, result: ComputeResult) -> dict[str, Any]:
    return {
        "accelerator": accelerator,
        "tp": cell.tp,
        "micro_batch_size": cell.micro_batch_size,
        "layer_type": cell.part,
        **({"recompute": cell.recompute} if cell.is_layer else {}),
        "forward_ms": result.forward.median_ms,
        "backward_ms": result.backward.median_ms,
        "weight_bytes": result.weight_bytes,
        "activation_bytes": result.activation_bytes,
        "recomputed_bytes": result.recomputed_bytes,
        "measured": {
            "samples": result.forward.samples,
            "forward_spread": result.forward.spread,
            "backward_spread": result.backward.spread,
            "peak_bytes": result.peak_bytes,
            "tp_communication": result.tp_communication,
        },
    }


def _message(num_bytes: int, result: MessageResult) -> dict[str, Any]:
    return {
        "link": "intra_node",
        "bytes": num_bytes,
        "ms": result.time.median_ms,
        "measured": {"samples": result.time.samples, "spread": result.time.spread},
    }
