"""Galvatron's computation file (units and formulas: `galvatron`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poseidon.inputs.file_model import shown
from poseidon.profile.importers.cell import Cell, Fact, Place, Reading, time_cells
from poseidon.profile.importers.galvatron_links import Bandwidths
from poseidon.profile.importers.numbers import MIB, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import RowKey

_STATIC = re.compile(r"layertype_(\d+|other_\d+)")
_LAYER = re.compile(r"layertype_(\d+|other)_bsz(\d{1,7})_seq(\d{1,8})")
_TOTAL = re.compile(r"layernum\[(\d{1,6})\]_bsz(\d{1,7})_seq(\d{1,8})")
REGIONS = 2
"""All-reduces of a layer in each direction (Shoeybi et al. 2019, arXiv 1909.08053, section 3)."""


@dataclass(frozen=True)
class Measured:
    """Forward times of one batch size, for the whole batch."""

    layer_ms: float
    other_ms: float
    place: Place
    how: str


@dataclass(frozen=True)
class Times:
    """A computation file."""

    accelerator: str
    seq_length: Fact | None
    by_size: Mapping[int, Measured]
    notes: tuple[str, ...]


def times_of(data: Mapping[str, Any], accelerator: str, options: ImportOptions, checked: Checked) -> Times:
    """The forward times of a file, by batch size."""
    if any(re.match(r"layertype_[1-9]|layernum\[\d+,", key) for key in data):
        checked.say("", "has several layer types (an encoder and a decoder): models with one stack are accepted")
    if any(_STATIC.fullmatch(key) for key in data):
        return _static(data, accelerator, options, checked)
    lengths = sorted(
        {int(found[3]) for key in data for found in (_LAYER.fullmatch(key) or _TOTAL.fullmatch(key),) if found}
    )
    if not lengths:
        checked.say("", "has no key like layernum[2]_bsz8_seq2048 or layertype_0_bsz8_seq2048")
        return Times(accelerator, None, {}, ())
    length = options.seq_length if options.seq_length in lengths else lengths[0]
    if len(lengths) > 1 and options.seq_length not in lengths:
        checked.say("", f"has the sequence lengths {', '.join(map(str, lengths))}: give one of them with --seq-length")
    layers = _processed(data, length, checked) or _from_totals(data, length, checked)
    return Times(accelerator, Fact(length, Place(checked.file, f"*_seq{length}")), layers, ())


def _static(data: Mapping[str, Any], accelerator: str, options: ImportOptions, checked: Checked) -> Times:
    layer = checked.number(data.get("layertype_0"), "layertype_0", "ms")
    other = checked.number(data.get("layertype_other_0"), "layertype_other_0", "ms")
    sizes = options.micro_batch_sizes or (1,)
    place = Place(checked.file, "layertype_0")
    by_size = {size: Measured(layer * size, other * size, place, "time of one sequence x size") for size in sizes}
    note = f"galvatron: static file: times of one sequence x micro-batch sizes {', '.join(map(str, sizes))}"
    return Times(accelerator, None, by_size, (note,))


def _processed(data: Mapping[str, Any], length: int, checked: Checked) -> dict[int, Measured]:
    """From Galvatron's own per-layer numbers."""
    found: dict[int, Measured] = {}
    for key, value in data.items():
        match = _LAYER.fullmatch(key)
        if match is None or match[1] != "0" or int(match[3]) != length:
            continue
        size = checked.count(match[2], key, "batch size")
        other = f"layertype_other_bsz{match[2]}_seq{match[3]}"
        if other not in data:
            checked.say(other, f"is missing, though {key} is there")
        layer_ms = checked.number(value, key, "ms") * size
        other_ms = checked.number(data.get(other, 0.0), other, "ms") * size
        found[size] = Measured(layer_ms, other_ms, Place(checked.file, key), "time of one sequence x size")
    return found


def _from_totals(data: Mapping[str, Any], length: int, checked: Checked) -> dict[int, Measured]:
    """From forward times of models with different numbers of layers."""
    totals: dict[int, dict[int, float]] = {}
    for key, value in data.items():
        match = _TOTAL.fullmatch(key)
        if match and int(match[3]) == length:
            layers = checked.count(match[1], key, "number of layers")
            sizes = totals.setdefault(checked.count(match[2], key, "batch size"), {})
            sizes[layers] = checked.number(value, key, "ms")
    found: dict[int, Measured] = {}
    for size, by_layers in totals.items():
        field = f"layernum[{min(by_layers)}]_bsz{size}_seq{length}"
        if len(by_layers) < 2:
            message = (
                "has one number of layers: the time of a layer is the difference of two; profile another layernum too"
            )
            checked.say(field, message)
            continue
        few, many = min(by_layers), max(by_layers)
        layer_ms = (by_layers[many] - by_layers[few]) / (many - few)
        if layer_ms <= 0:
            checked.say(field, f"{few} layers take as long as {many} or longer ({shown(by_layers[few])} ms)")
        other = max(0.0, by_layers[few] - few * layer_ms)
        how = f"(time of {many} layers - time of {few}) / {many - few}"
        found[size] = Measured(layer_ms, other, Place(checked.file, field), how)
    return found


def time_rows(times: Times, tps: Sequence[int], links: Bandwidths, options: ImportOptions) -> Reading:
    """Rows at TP 1, and at the TP degrees that memory and bandwidths are known for."""
    degrees = [tp for tp in tps if tp == 1 or (options.model is not None and links.bus_gb_per_s(tp) is not None)] or [1]
    length = times.seq_length.value if times.seq_length else options.seq_length
    cells = [
        cell
        for tp in degrees
        for size, measured in times.by_size.items()
        for cell in _rows(measured, RowKey(times.accelerator, tp, size), int(length or 0), links, options)
    ]
    notes = [
        *times.notes,
        f"galvatron: backward = {options.backward_ratio:g} x forward",
        f"galvatron: of the time of embedding and head {options.embedding_share:.0%} is the embedding's",
    ]
    if derived := [str(tp) for tp in degrees if tp > 1]:
        notes.append(
            f"galvatron: TP {', '.join(derived)} from TP 1: forward / TP + 2 all-reduces over the measured bandwidth"
        )
    if left := [str(tp) for tp in tps if tp not in degrees]:
        notes.append(
            f"galvatron: TP {', '.join(left)}: times need --model and the all-reduce bandwidth of that many devices"
        )
    return Reading(tuple(cells), seq_length=(times.seq_length,) if times.seq_length else (), notes=tuple(notes))


def _rows(measured: Measured, at: RowKey, seq_length: int, links: Bandwidths, options: ImportOptions) -> Iterator[Cell]:
    ratio, share = options.backward_ratio, options.embedding_share
    exchange_ms = 0.0
    if at.tp > 1 and options.model is not None:
        mib = at.micro_batch_size * seq_length * options.model.hidden_size * ELEMENT_BYTES / MIB
        exchange_ms = REGIONS * 2 * (at.tp - 1) / at.tp * mib / (links.bus_gb_per_s(at.tp) or 1.0)
    how = measured.how if at.tp == 1 else f"forward of TP 1 / {at.tp} + {REGIONS} all-reduces"
    layer, other = measured.layer_ms / at.tp, measured.other_ms / at.tp
    yield from time_cells("dense", at, layer + exchange_ms, ratio * layer + exchange_ms, measured.place, how)
    how = f"{share:g} of embedding and head together"
    yield from time_cells("embedding", at, share * other, ratio * share * other, measured.place, how)
    yield from time_cells("head", at, (1 - share) * other, ratio * (1 - share) * other, measured.place, how)
