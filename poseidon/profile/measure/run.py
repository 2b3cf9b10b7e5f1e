"""One run of `poseidon profile`: all cells of a job, each kept in the journal as soon as it is finished."""

from __future__ import annotations

import platform
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from poseidon.errors import InputError, Mistake
from poseidon.profile.measure.cells import AllReduceCell, Cell, ComputeCell, TransferCell
from poseidon.profile.measure.compute import measure_compute
from poseidon.profile.measure.device import Device
from poseidon.profile.measure.document import model_sha256, profile_document
from poseidon.profile.measure.job import MeasureJob, cells_of
from poseidon.profile.measure.journal import Journal, now
from poseidon.profile.measure.messages import measure_all_reduce, measure_transfer
from poseidon.profile.measure.ranks import Ranks
from poseidon.profile.measure.repeats import Repeats
from poseidon.profile.measure.results import ComputeResult, MessageResult, Result
from poseidon.profile.measure.ring import Ring, fitted_ring


@dataclass(frozen=True)
class Finished:
    """A cell that is done, and how far the run is."""

    cell: Cell
    result: Result
    number: int
    of: int


def measure(
    job: MeasureJob,
    ranks: Ranks,
    repeats: Repeats,
    journal_path: Path,
    *,
    fresh: bool,
    tell: Callable[[Finished], None],
) -> dict[str, Any]:
    """Measures what the journal doesn't have yet; the profile document.

    All ranks call it; rank 0 alone writes and tells. Raises InputError for a journal of something else, and where no
    layer fits into the device.
    """
    cells = cells_of(job, ranks.world_size)
    identity = identity_of(job, ranks)
    _check_alike(ranks)
    journal = Journal(journal_path, identity) if fresh else Journal.read(journal_path, identity)
    ranks.barrier()  # all have read before one writes
    if ranks.rank == 0:
        journal.begin(fresh)
    todo = [cell for cell in cells if str(cell) not in journal.results]
    for cell in todo:
        result = _measured(cell, job, ranks, repeats, journal)
        journal.add(cell, result, write=ranks.rank == 0)
        number = len(cells) - len(todo) + todo.index(cell) + 1
        tell(Finished(cell, result, number, len(cells)))
    if not any(isinstance(journal.results[str(cell)], ComputeResult) for cell in cells if _is_layer(cell)):
        raise InputError(
            Mistake(str(journal_path), "", "no layer fits into the device; try a smaller --micro-batch-size")
        )
    return profile_document(job, cells, journal.results, _taken(job, ranks, repeats, journal))


def _check_alike(ranks: Ranks) -> None:
    """Raises InputError where the devices of this node are not of one kind: their times would be those of the slowest.

    Processes compare a number of 20 bits made from the name, which fp32 holds exactly.
    """
    number = float(zlib.crc32(ranks.device.name.encode()) % 2**20)
    largest, smallest = ranks.slowest((number, -number))
    if largest != -smallest:
        message = f"the devices of this node are not alike ({ranks.device.name} and others): choose which ones to use"
        raise InputError(Mistake("--device", "", message))


def _is_layer(cell: Cell) -> bool:
    return isinstance(cell, ComputeCell) and cell.is_layer


def _measured(cell: Cell, job: MeasureJob, ranks: Ranks, repeats: Repeats, journal: Journal) -> Result:
    if isinstance(cell, TransferCell):
        return measure_transfer(cell, ranks, repeats)
    if isinstance(cell, AllReduceCell):
        return measure_all_reduce(cell, ranks, repeats)
    return measure_compute(cell, job, ranks, repeats, _ring(cell, job, ranks, journal))


def _ring(cell: ComputeCell, job: MeasureJob, ranks: Ranks, journal: Journal) -> Ring | None:
    """From the measured all-reduces over all processes, where they are fewer than the cell's TP degree."""
    if cell.tp <= ranks.world_size:
        return None
    points = []
    for other in cells_of(job, ranks.world_size):
        if isinstance(other, AllReduceCell) and (other.tp, other.dp) == (1, ranks.world_size):
            result = journal.results[str(other)]
            assert isinstance(result, MessageResult)
            points.append((other.num_bytes, result.time.median_ms))
    return fitted_ring(points, ranks.world_size)


def identity_of(job: MeasureJob, ranks: Ranks) -> dict[str, Any]:
    """What all cells of a journal have in common; another of any of these would mix measurements."""
    device: Device = ranks.device
    return {
        "model": job.model.name,
        "model_sha256": model_sha256(job.model),
        "accelerator": job.accelerator,
        "seq_length": job.seq_length,
        "precision": job.precision,
        "sequence_parallel": job.sequence_parallel,
        "device": device.kind,
        "device_name": device.name,
        "host": platform.node(),
        "processes": ranks.world_size,
        "backend": device.backend,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "poseidon": _own_version(),
    }


def _taken(job: MeasureJob, ranks: Ranks, repeats: Repeats, journal: Journal) -> dict[str, Any]:
    identity = identity_of(job, ranks)
    for shared in ("model", "seq_length", "precision"):
        del identity[shared]
    return {
        **identity,
        "started": journal.started,
        "finished": now(),
        "warmups": repeats.warmups,
        "fewest_samples": repeats.fewest,
        "most_samples": repeats.most,
        "error_limit": repeats.error_limit,
    }


def _own_version() -> str:
    try:
        return version("poseidon-planner")
    except PackageNotFoundError:
        return "not installed"
