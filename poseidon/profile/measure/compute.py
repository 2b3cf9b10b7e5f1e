"""Measures a compute cell: bytes first, then times."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace

from poseidon.profile.measure.cells import ComputeCell
from poseidon.profile.measure.job import MeasureJob
from poseidon.profile.measure.peak_bytes import peak_bytes
from poseidon.profile.measure.ranks import Ranks
from poseidon.profile.measure.repeats import Repeats, Timing, repeated
from poseidon.profile.measure.results import ComputeResult, NoRoom, TpCommunication
from poseidon.profile.measure.ring import Ring, communication_ms
from poseidon.profile.measure.saved_bytes import saved_bytes
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.measure.work import Work, work_of
from poseidon.profile.micro_batch import ELEMENT_BYTES

OUT_OF_MEMORY = ("out of memory", "can't allocate memory")
"""What the messages of torch's allocators have in common: CUDA and NPU, CPU."""


@dataclass(frozen=True)
class _Bytes:
    weight: int = 0
    kept: int = 0
    recomputed: int = 0
    peak: int = 0


def measure_compute(
    cell: ComputeCell, job: MeasureJob, ranks: Ranks, repeats: Repeats, ring: Ring | None
) -> ComputeResult | NoRoom:
    """The cell's result; the times are those of the slowest rank, the bytes this one's.

    `ring` is needed where there are fewer processes than the cell's TP degree.
    """
    tp = _tensor_parallel(cell.tp, job.sequence_parallel, ranks)
    ranks.device.release()
    work, sizes, reason = None, _Bytes(), ""
    try:
        if tp is not None:
            work, sizes = _prepared(cell, job, tp, ranks)
    except RuntimeError as error:
        if not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        tried = re.search(r"tried to allocate [\d.]+ \w+", str(error), re.IGNORECASE)
        reason = f"out of memory, {tried[0].lower()}" if tried else "out of memory"
    if ranks.slowest((float(bool(reason)),))[0]:
        return NoRoom(reason or "another rank is out of memory")
    forward, backward = repeated(lambda: timed_pass(work, ranks), repeats)
    how: TpCommunication = "none" if cell.tp == 1 else "measured"
    if cell.tp > ranks.world_size:
        assert ring is not None
        how = "ring"
        stream = cell.micro_batch_size * job.seq_length * job.model.hidden_size * ELEMENT_BYTES
        more_forward, more_backward = communication_ms(cell, stream, ring, job.sequence_parallel)
        forward, backward = _longer(forward, more_forward), _longer(backward, more_backward)
    return ComputeResult(forward, backward, sizes.weight, sizes.kept, sizes.recomputed, sizes.peak, how)


def _tensor_parallel(size: int, sequence_parallel: bool, ranks: Ranks) -> TensorParallel | None:
    """This process's place in a TP group; None where it is left over."""
    if size == 1 or size > ranks.world_size:
        return TensorParallel(size, 0, sequence_parallel)
    group = ranks.group(size, 1)
    return None if group is None else TensorParallel(size, ranks.rank % size, sequence_parallel, group)


def _prepared(cell: ComputeCell, job: MeasureJob, tp: TensorParallel, ranks: Ranks) -> tuple[Work, _Bytes]:
    """The cell's work, run once, and its bytes."""
    device = ranks.device
    all_kept = 0
    if cell.recompute != "none":
        plain = work_of(replace(cell, recompute="none"), job, tp, device.torch_device)
        all_kept = saved_bytes(plain.forward, plain.module)
        del plain
    work = work_of(cell, job, tp, device.torch_device)
    kept = saved_bytes(work.forward, work.module)
    peak = peak_bytes(lambda: work.backward(work.forward()), device)
    return work, _Bytes(work.weight_bytes, kept, max(0, all_kept - kept), peak)


def timed_pass(work: Work | None, ranks: Ranks) -> tuple[float, ...]:
    """One forward and backward pass: the slowest rank's times in ms."""
    ranks.barrier()
    if work is None:
        return ranks.slowest((0.0, 0.0))
    ranks.device.synchronize()
    start = time.perf_counter()
    output = work.forward()
    ranks.device.synchronize()
    middle = time.perf_counter()
    work.backward(output)
    ranks.device.synchronize()
    end = time.perf_counter()
    return ranks.slowest((1e3 * (middle - start), 1e3 * (end - middle)))


def _longer(timing: Timing, more_ms: float) -> Timing:
    """A timing with a constant added to all samples."""
    longer = timing.median_ms + more_ms
    return Timing(longer, timing.spread * timing.median_ms / longer, timing.samples)
