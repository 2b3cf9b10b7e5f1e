"""Sailor's own profiles: times of every layer, and its companions for memory and bandwidth.

Format: eth-easl/sailor (SOSP 2025) at cf2c8e3cc5. Three kinds of JSON file:

- times, ``MODEL_GPU.json`` (or one file for several models and GPUs, {model: {gpu: ...}}):
  {micro-batch size: {TP: {layer: [forward, backward, optimizer update]}}}, seconds; layer 0 is the embedding, the last
  one the head, for LLaMA the final norm stands before it;
- memory, ``llm_info.json``: {model: {TP: {layer: {params_floats, act_mem_floats, act_mem_bytes, ...}}}}, numbers of
  elements and bytes, one sequence;
- bandwidth, ``intra_node_bandwidths.json``: {GPU: {GPUs of the node that talk: [[a, b, c], highest bytes/s]}}:
  GB/s = a x^2 + b x + c with x = log2(bytes / 1e6).

Derived: a layer is the mean over all layers; head = head + final norm. Weights = 2 bytes x params_floats; activations =
act_mem_bytes x micro-batch size, in the precision that Sailor measured (4 bytes). Transfers inside a node: bytes /
bandwidth of the fit for two GPUs, 1 to 1024 MB; all-reduce over n GPUs: 2 (n-1) messages of bytes / n (Sailor's ring).
The update times have no place in a profile. Weights and activations are missing without ``llm_info.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import log2
from pathlib import Path
from typing import Any

from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.reading import read_document
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Cell, Fact, PerSequence, Place, Reading, time_cells
from poseidon.profile.importers.numbers import MOST, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import accelerator_of
from poseidon.profile.importers.stack import Stack, stack_of
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import MeasuredAllReduce, MeasuredTransfer, RowKey

NAME = "sailor"
MS_PER_S = 1e3
SIZES_MB = tuple(2**power for power in range(11))
"""Sizes at which a bandwidth fit becomes rows: 1 to 1024 MB, where Sailor measured."""
NOTES = (
    "sailor: times as they are; Sailor's own profiles were measured in 4-byte precision (fp32 or TF32)",
    "sailor: a layer is the mean over the model's layers",
    "sailor: optimizer update times have no place in a profile and were left out",
)
_WHOLE = re.compile(r"[0-9]{1,8}")


def kind_of(data: Any) -> str | None:
    """What a JSON document of Sailor's holds: "times", "memory", "bandwidth", or None."""
    inner, keys = data, 0
    while isinstance(inner, Mapping) and inner and keys < 6:
        first = next((value for value in inner.values() if value not in ({}, [])), None)
        if isinstance(first, list) and len(first) == 3 and not isinstance(first[0], list) and keys >= 2:
            return "times"
        if isinstance(first, list) and len(first) == 2 and isinstance(first[0], list) and keys == 1:
            return "bandwidth"
        if isinstance(first, Mapping) and "params_floats" in first:
            return "memory"
        inner, keys = first, keys + 1
    return None


def is_sailor(data: Any) -> bool:
    """Whether a JSON document looks like one of Sailor's."""
    return kind_of(data) is not None


def read_sailor(path: Path, options: ImportOptions) -> Reading:
    """The rows of one file."""
    data = read_document(path).data
    checked = Checked(file_label(path))
    match kind_of(data):
        case "times":
            reading = Reading(
                tuple(_all_times(path, data, options, checked)), notes=NOTES, **_model(path, data, checked)
            )
        case "memory":
            memory = tuple(_all_memory(data, options, checked))
            note = "sailor: activations as measured in 4-byte precision; weights at 2 bytes a parameter"
            reading = Reading(per_sequence=memory, notes=(note,))
        case "bandwidth":
            reading = _bandwidths(data, options, checked)
        case _:
            message = (
                "is none of Sailor's files: times {micro-batch: {TP: {layer: [forward, backward, update]}}} in s, "
            )
            checked.say("", f"{message}llm_info.json or intra_node_bandwidths.json are expected")
            reading = Reading()
    checked.finish()
    return reading


def _model(path: Path, data: Mapping[str, Any], checked: Checked) -> dict[str, Any]:
    names = _names(path)
    return {} if names is None or _nested(data) else {"model": (Fact(names[0], Place(checked.file)),)}


def _names(path: Path) -> tuple[str, str] | None:
    """Model and GPU from ``OPT-350_A100-40.json``."""
    model, underscore, gpu = path.stem.rpartition("_")
    return (model, gpu) if underscore and model and gpu else None


def _nested(data: Mapping[str, Any]) -> bool:
    return not all(_WHOLE.fullmatch(key) for key in data)


def _all_times(path: Path, data: Mapping[str, Any], options: ImportOptions, checked: Checked) -> Iterator[Cell]:
    if not _nested(data):
        names = _names(path)
        accelerator = accelerator_of(path, options, checked, names[1] if names else None)
        yield from _times(data, accelerator, (), options, checked)
        return
    model = _chosen_model(data, options, checked)
    for gpu, sizes in checked.mapping(data.get(model), (model,)).items():
        if options.accelerator in (None, gpu):
            yield from _times(sizes, options.rename.get(gpu, gpu), (model, gpu), options, checked)


def _chosen_model(data: Mapping[str, Any], options: ImportOptions, checked: Checked) -> str:
    """The model of a file with several: the only one, else the one that --model is called like."""
    names = list(data)
    if len(names) > 1:
        wanted = options.model.name if options.model else None
        if wanted not in names:
            found = ", ".join(map(shown, names[:10]))
            checked.say("", f"holds the models {found}: give --model FILE whose name is one of them")
        return str(wanted)
    return str(names[0])


def _times(
    sizes: Any, accelerator: str, prefix: tuple[str, ...], options: ImportOptions, checked: Checked
) -> Iterator[Cell]:
    for size, degrees in checked.counted_keys(sizes, prefix, "micro-batch size"):
        for tp, layers in checked.counted_keys(degrees, (*prefix, str(size)), "TP degree"):
            path = (*prefix, str(size), str(tp))
            if layers:
                yield from _one_run(layers, RowKey(accelerator, tp, size), path, options, checked)


def _one_run(
    layers: Any, at: RowKey, path: tuple[str, ...], options: ImportOptions, checked: Checked
) -> Iterator[Cell]:
    entries = _ordered(layers, path, checked)
    forward = [_second(entry, 0, (*path, str(index)), checked) for index, entry in enumerate(entries)]
    backward = [_second(entry, 1, (*path, str(index)), checked) for index, entry in enumerate(entries)]
    stack = stack_of(forward, options.model)
    place = Place(checked.file, field_path(path))
    if not isinstance(stack, Stack):
        checked.say(place.field, stack)
        return
    backwards = stack.values(backward)
    for part, value in stack.values(forward).items():
        yield from time_cells(part, at, value * MS_PER_S, backwards[part] * MS_PER_S, place, "")


def _ordered(layers: Any, path: tuple[str, ...], checked: Checked) -> list[Any]:
    """The entries in the order of their numbers, which count from 0 without a gap."""
    mapping = checked.mapping(layers, path)
    missing = [str(index) for index in range(len(mapping)) if str(index) not in mapping]
    if missing:
        checked.say(field_path(path), f"layer {missing[0]} is missing: layers are numbered from 0 without a gap")
        return []
    return [mapping[str(index)] for index in range(len(mapping))]


def _second(entry: Any, index: int, path: tuple[str, ...], checked: Checked) -> float:
    if not isinstance(entry, list) or len(entry) != 3:
        if index == 0:
            checked.say(field_path(path), f"expected [forward, backward, update] in seconds, got {shown(entry)}")
        return 0.0
    return checked.number(entry[index], field_path([*path, index]), "seconds")


def _all_memory(data: Mapping[str, Any], options: ImportOptions, checked: Checked) -> Iterator[PerSequence]:
    model = _chosen_model(data, options, checked)
    for tp, layers in checked.counted_keys(data.get(model), (model,), "TP degree"):
        path = (model, str(tp))
        entries = [checked.mapping(entry, path) for entry in _ordered(layers, path, checked)]
        parameters, kept = (
            [checked.number(e.get(name), field_path([*path, str(i), name]), unit) for i, e in enumerate(entries)]
            for name, unit in (("params_floats", "parameters"), ("act_mem_bytes", "bytes"))
        )
        stack = stack_of(kept, options.model)
        if not isinstance(stack, Stack):
            checked.say(field_path(path), stack)
            continue
        activations = stack.values(kept)
        place = Place(checked.file, field_path(path))
        for part, count in stack.values(parameters).items():
            yield PerSequence(
                part, tp, count * ELEMENT_BYTES, activations[part], place, "act_mem_bytes x micro-batch size"
            )


def _bandwidths(data: Mapping[str, Any], options: ImportOptions, checked: Checked) -> Reading:
    transfers: list[MeasuredTransfer] = []
    all_reduce: list[MeasuredAllReduce] = []
    for gpu, groups in data.items():
        name = options.rename.get(gpu, gpu)
        for count, fit in checked.counted_keys(groups, (gpu,), "number of GPUs"):
            field = field_path([gpu, str(count)])
            for size_mb in SIZES_MB if count > 1 else ():
                num_bytes = size_mb * 1e6
                if count == 2:
                    ms = _message_ms(num_bytes, fit, field, checked)
                    transfers.append(MeasuredTransfer(name, name, "intra_node", num_bytes, ms))
                ring = 2 * (count - 1) * _message_ms(num_bytes / count, fit, field, checked)
                all_reduce.append(MeasuredAllReduce(name, 1, count, "intra_node", num_bytes, ring))
    note = "sailor: transfers and all-reduces inside a node from the bandwidth fits, at 1 to 1024 MB"
    return Reading(transfers=tuple(transfers), all_reduce=tuple(all_reduce), notes=(note,))


def _is_coefficient(value: object) -> bool:
    """A finite number of a sane size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST


def _message_ms(num_bytes: float, fit: Any, field: str, checked: Checked) -> float:
    """bytes / (the fitted GB/s, not above the highest measured one)."""
    shape = isinstance(fit, list) and len(fit) == 2 and isinstance(fit[0], list) and len(fit[0]) == 3
    numbers: list[float] = [*fit[0], fit[1]] if shape else []
    if not shape or not all(_is_coefficient(number) for number in numbers):
        checked.say(field, f"expected [[a, b, c], highest bytes/s], got {shown(fit)}")
        return 0.0
    x = log2(num_bytes / 1e6)
    bytes_per_s = min((numbers[0] * x + numbers[1]) * x + numbers[2], numbers[3] / 1e9) * 1e9
    if bytes_per_s <= 0:
        # Below what was measured a parabola may fall under 0: the fit's value at 1 MB stands in.
        bytes_per_s = numbers[2] * 1e9
    if bytes_per_s <= 0:
        checked.say(field, "the fitted bandwidth is not above 0 at 1 MB")
        return 0.0
    return num_bytes / bytes_per_s * 1e3
