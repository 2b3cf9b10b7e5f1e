"""Varuna's profiles as Sailor writes them for its comparison: ``profile_TP.json``.

Format: eth-easl/sailor (SOSP 2025) at cf2c8e3cc5, its converter for Varuna: {layer: {micro-batch size: {forward,
backward, params_bytes, mem_required, output_activation}}}; times in seconds, of one device of the TP group, sizes in
bytes; an empty mapping where nothing was measured. Layer 0 is the embedding, the last one the head. The TP degree is
the number in the file's name (the converter is given the GPUs of a node), --tp goes before it.

Derived: a layer is the mean over all layers; parameters = params_bytes / element bytes (--element-bytes, else from
--model), weights = 2 bytes a parameter. `mem_required` is the peak of running a layer alone, not what it keeps, and is
left out: activations are missing (--model works them out). The accelerator is not named: --accelerator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from poseidon.inputs.field_path import field_path
from poseidon.inputs.reading import read_document
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Cell, Place, Reading, time_cells
from poseidon.profile.importers.element_bytes import element_bytes
from poseidon.profile.importers.numbers import Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import accelerator_of
from poseidon.profile.importers.sailor import MS_PER_S
from poseidon.profile.importers.stack import Stack, stack_of
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import RowKey

NAME = "varuna"
FIELDS = ("forward", "backward", "params_bytes")
UNITS = {"forward": "seconds", "backward": "seconds", "params_bytes": "bytes"}


def is_varuna(data: Any) -> bool:
    """Whether a JSON document looks like one."""
    sizes = next(iter(data.values()), None) if isinstance(data, dict) else None
    if not isinstance(sizes, dict):
        return False
    return any(isinstance(entry, dict) and {"forward", "params_bytes"} <= entry.keys() for entry in sizes.values())


def read_varuna(path: Path, options: ImportOptions) -> Reading:
    """The rows of one file."""
    data = read_document(path).data
    checked = Checked(file_label(path))
    tp = options.tp or _tp(path, checked)
    accelerator = accelerator_of(path, options, checked)
    if {str(index) for index in range(len(data))} != data.keys():
        checked.say("", "layers must be numbered from 0 without a gap")
    checked.finish()
    by_layer = [checked.mapping(data[str(index)], (str(index),)) for index in range(len(data))]
    cells: list[Cell] = []
    for size in dict.fromkeys(size for entry in by_layer for size in entry):
        entries = [entry.get(size) for entry in by_layer]
        if any(entries):
            at = RowKey(accelerator, tp, checked.count(size, field_path([size]), "micro-batch size"))
            cells += _one_size(entries, at, size, options, checked)
    checked.finish()
    notes = (
        "varuna: a layer is the mean over the model's layers",
        "varuna: mem_required is the peak of running a layer, not what it keeps, and was left out",
    )
    return Reading(tuple(cells), notes=notes)


def _tp(path: Path, checked: Checked) -> int:
    found = re.search(r"_(\d{1,4})$", path.stem)
    if found and int(found[1]):
        return int(found[1])
    checked.say("", "the file's name doesn't end with the TP degree (profile_4.json): give --tp N")
    return 1


def _one_size(entries: list[Any], at: RowKey, size: str, options: ImportOptions, checked: Checked) -> Iterator[Cell]:
    records = [checked.mapping(entry, (str(index), size)) for index, entry in enumerate(entries)]
    numbers = {
        name: [
            checked.number(r.get(name), field_path([str(i), size, name]), UNITS[name]) for i, r in enumerate(records)
        ]
        for name in FIELDS
    }
    stack = stack_of(numbers["forward"], options.model)
    if not isinstance(stack, Stack):
        checked.say("", stack)
        return
    if checked.mistakes:
        return
    parts = {name: stack.values(values) for name, values in numbers.items()}
    place = Place(checked.file, f"*.{size}")
    width = element_bytes(parts["params_bytes"], at, options, checked, f"*.{size}.params_bytes")
    for part, forward in parts["forward"].items():
        yield from time_cells(part, at, forward * MS_PER_S, parts["backward"][part] * MS_PER_S, place, "")
        weights = parts["params_bytes"][part] / width * ELEMENT_BYTES
        yield Cell(part, at, "weight_bytes", weights, place, "2 bytes x parameters")
