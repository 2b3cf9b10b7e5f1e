"""Times that no device can have, and times that look odd: most often a wrong unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster_file import load_cluster
from poseidon.inputs.model import Model
from poseidon.profile.importers.cell import VOCABULARY, Cell, Part, Quantity
from poseidon.profile.importers.complete import ANALYTIC
from poseidon.profile.importers.merge import Merged
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.layer import layer_forward_flops
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.profile import RowKey

HIGHEST_PEAK_TFLOPS = 5_000.0
"""Twice the fastest device of configs/accelerators (B300, 2,500 TFLOPS dense in 2-byte precision)."""
SLOW_TFLOPS = 0.02
"""A layer that runs slower than this is reported: a thousandth of a slow GPU's rate, so most likely a unit."""
LONG_MS = 60_000.0
"""Longest forward pass of one layer that isn't reported where no model is given."""
RATIOS = (0.3, 8.0)
"""Backward over forward of a layer that isn't reported: 1 to 3 is usual, with recomputation and small kernels more."""
SHRINKING = 0.8
"""A larger micro-batch that takes less than this of a smaller one's time is reported."""


def implausible(rows: Merged, options: ImportOptions, seq_length: int) -> tuple[str, ...]:
    """Warnings; raises InputError for times that can't be."""
    peaks = _peaks(options)
    warnings: list[str] = []
    mistakes: list[Mistake] = []
    for (part, at), row in rows.rows.items():
        if part in VOCABULARY or row["forward_ms"].derived == ANALYTIC:
            continue
        mistakes += _impossible(part, at, row, options.model, seq_length, peaks)
        warnings += _odd(part, at, row, options.model, seq_length)
    if mistakes:
        raise InputError(mistakes)
    return (*warnings, *_shrinking(rows))


def _peaks(options: ImportOptions) -> Mapping[str, float]:
    if options.cluster is None:
        return {}
    return {name: device.peak_tflops for name, device in load_cluster(options.cluster).accelerators.items()}


def _rate_tflops(part: Part, at: RowKey, forward_ms: float, model: Model, seq_length: int) -> float:
    """Achieved in a layer's forward pass."""
    assert part == "dense" or part == "moe"
    flops = layer_forward_flops(model, part, MicroBatch(at.micro_batch_size, seq_length, at.tp))
    return flops / forward_ms / 1e9


def _impossible(
    part: Part,
    at: RowKey,
    row: Mapping[Quantity, Cell],
    model: Model | None,
    seq_length: int,
    peaks: Mapping[str, float],
) -> Iterator[Mistake]:
    cell = row["forward_ms"]
    for quantity in ("forward_ms", "backward_ms"):
        if row[quantity].value == 0:
            yield Mistake(cell.place.file, cell.place.field, f"{quantity} of {part} layers {at} is 0")
    if cell.value == 0 or model is None:
        return
    rate = _rate_tflops(part, at, cell.value, model, seq_length)
    peak = peaks.get(at.accelerator, HIGHEST_PEAK_TFLOPS)
    if rate > peak:
        message = (
            f"{cell.value:.4g} ms for the forward pass of a {part} layer {at} of {model.name} would be {rate:,.0f} "
            f"TFLOPS, but the peak is {peak:,.0f}: are unit (seconds for ms?), model and sequence length right?"
        )
        yield Mistake(cell.place.file, cell.place.field, message)


def _odd(part: Part, at: RowKey, row: Mapping[Quantity, Cell], model: Model | None, seq_length: int) -> Iterator[str]:
    forward, backward = row["forward_ms"].value, row["backward_ms"].value
    if not forward:
        return
    if model is not None and (rate := _rate_tflops(part, at, forward, model, seq_length)) < SLOW_TFLOPS:
        yield f"{at}: {forward:,.1f} ms for a {part} layer's forward pass is {rate:.2g} TFLOPS: is the unit right?"
    if model is None and forward > LONG_MS:
        yield f"{at}: {forward / 1e3:,.1f} s for a {part} layer's forward pass: is the unit right?"
    if not RATIOS[0] <= backward / forward <= RATIOS[1]:
        yield f"{at}: backward is {backward / forward:,.1f} x forward of a {part} layer; 1 to 3 is usual"


def _shrinking(rows: Merged) -> Iterator[str]:
    """Larger micro-batches that take less time."""
    for part in rows.layer_types:
        last: tuple[RowKey, float] | None = None
        for at in rows.keys:
            row = rows.rows.get((part, at))
            if row is None or row["forward_ms"].derived == ANALYTIC:
                continue
            total = row["forward_ms"].value + row["backward_ms"].value
            same = last is not None and (at.accelerator, at.tp) == (last[0].accelerator, last[0].tp)
            if last is not None and same and total < SHRINKING * last[1]:
                before = f"{last[1]:.3g} ms with micro-batches of {last[0].micro_batch_size}"
                yield f"{at}: a {part} layer takes {total:.3g} ms, less than {before}"
            last = (at, total)
