"""Piper's profiles as Sailor writes them for its comparison: ``profile.json``.

Format: eth-easl/sailor (SOSP 2025) at cf2c8e3cc5, its converter for Piper (Tarnawski et al., NeurIPS 2021):
{micro-batch size: {nodes: [{id, name: Embedding | Transformer | RMS | Head, TMPCs: {TP: [{id: "vanilla",
timePerSample, parameterSize, memoryUsageA, memoryUsageB}]}}], edges}}. In spite of its name timePerSample is of the
whole micro-batch (forward and backward), in seconds; parameterSize: bytes of the weights on a device; memoryUsageA:
bytes of kept activations of the micro-batch; memoryUsageB: bytes of training state.

Derived: forward = total / (1 + r), backward = total r / (1 + r); a layer is the mean over all layers; parameters =
parameterSize / element bytes (--element-bytes, else from --model), weights = 2 bytes a parameter. The accelerator is
not named: --accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.reading import read_document
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Cell, Place, Reading, byte_cells, time_cells
from poseidon.profile.importers.element_bytes import element_bytes
from poseidon.profile.importers.numbers import Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import accelerator_of
from poseidon.profile.importers.sailor import MS_PER_S
from poseidon.profile.importers.stack import Stack, stack_of
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import RowKey

NAME = "piper"
UNITS = {"timePerSample": "seconds", "parameterSize": "bytes", "memoryUsageA": "bytes"}


def is_piper(data: Any) -> bool:
    """Whether a JSON document looks like one."""
    first = next(iter(data.values()), None) if isinstance(data, dict) else None
    return isinstance(first, dict) and {"nodes", "edges"} <= first.keys()


def read_piper(path: Path, options: ImportOptions) -> Reading:
    """The rows of one file."""
    data = read_document(path).data
    checked = Checked(file_label(path))
    accelerator = accelerator_of(path, options, checked)
    cells: list[Cell] = []
    for size, content in checked.counted_keys(data, (), "micro-batch size"):
        nodes = checked.mapping(content, (str(size),)).get("nodes")
        if not isinstance(nodes, list) or not nodes or not all(isinstance(node, Mapping) for node in nodes):
            checked.say(f"{size}.nodes", f"expected a list of mappings, got {shown(nodes)}")
            continue
        degrees = checked.mapping(nodes[0].get("TMPCs"), (str(size), "nodes", 0, "TMPCs"))
        for tp, _ in checked.counted_keys(degrees, (str(size), "nodes", 0, "TMPCs"), "TP degree"):
            cells += _one_degree(nodes, RowKey(accelerator, tp, size), options, checked)
    checked.finish()
    notes = (
        f"piper: forward and backward from their sum, backward = {options.backward_ratio:g} x forward",
        "piper: a layer is the mean over the model's layers; activations as measured in 4-byte precision",
    )
    return Reading(tuple(cells), notes=notes)


def _one_degree(nodes: list[Any], at: RowKey, options: ImportOptions, checked: Checked) -> Iterator[Cell]:
    path = (str(at.micro_batch_size), "nodes")
    records = [_record(node, at, (*path, index, "TMPCs"), checked) for index, node in enumerate(nodes)]
    numbers = {
        name: [checked.number(r.get(name), field_path([*path, i, name]), unit) for i, r in enumerate(records)]
        for name, unit in UNITS.items()
    }
    stack = stack_of(numbers["timePerSample"], options.model)
    if not isinstance(stack, Stack):
        checked.say(field_path(path), stack)
        return
    if checked.mistakes:
        return
    parts = {name: stack.values(values) for name, values in numbers.items()}
    width = element_bytes(parts["parameterSize"], at, options, checked, field_path([*path, 1, "parameterSize"]))
    place = Place(checked.file, field_path([*path, "*", "TMPCs", str(at.tp)]))
    for part, total in parts["timePerSample"].items():
        forward = total * MS_PER_S / (1 + options.backward_ratio)
        how = f"forward = total / {1 + options.backward_ratio:g}, backward = the rest"
        yield from time_cells(part, at, forward, total * MS_PER_S - forward, place, how)
        weights = parts["parameterSize"][part] / width * ELEMENT_BYTES
        yield from byte_cells(part, at, weights, parts["memoryUsageA"][part], place, "2 bytes x parameters")


def _record(node: Mapping[str, Any], at: RowKey, path: tuple[str | int, ...], checked: Checked) -> Mapping[str, Any]:
    """The one way of running a node at a TP degree."""
    ways = checked.mapping(node.get("TMPCs"), path).get(str(at.tp))
    if not isinstance(ways, list) or len(ways) != 1 or not isinstance(ways[0], Mapping):
        checked.say(field_path([*path, str(at.tp)]), f"expected a list of one mapping, got {shown(ways)}")
        return {}
    return ways[0]
