"""Metis' profile files: one JSON for each accelerator, TP degree and micro-batch size.

Format: SamsungLabs/Metis (USENIX ATC 2024) at 4b24046, README, section "Profile data", and its loader, which takes
accelerator, TP and micro-batch size from the name ``DeviceType.A100_tp1_bs4.json``; Sailor writes the same content as
``mbs4_tmp1.json``. Lists have an entry for the embedding, each layer, (a final norm) and the head.

| field | unit |
| --- | --- |
| model.parameters.parameters_per_layer_bytes | bytes on one device, in the precision that was measured |
| model.parameters.activation_parameters_bytes | bytes of each layer's output, whole micro-batch |
| execution_time.layer_compute_total_ms | ms, forward and backward together |
| execution_memory.layer_memory_total_mb | MiB: training state and kept activations of each layer |
| execution_time.optimizer_time_ms, batch_generator_time_ms | ms; a profile has no place for them |

Derived: parameters = bytes / element bytes (2 or 4: --element-bytes, else from --model's parameter count), weights =
2 bytes a parameter; forward = total / (1 + r), backward = total r / (1 + r); activations = memory - parameters x state
bytes (--state-bytes; 18 for 2-byte weights: the contract's 2 + 4 + 12; 20 for 4-byte weights: Sailor's converter counts
4 + 4 + 8 + 4). Where `poseidon` wrote the file itself, forward times and all else come from its own block, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from poseidon.inputs.file_model import FileModel
from poseidon.inputs.model import Model
from poseidon.inputs.reading import read_document
from poseidon.inputs.source_file import file_label
from poseidon.inputs.training import Precision, Recompute
from poseidon.inputs.validation import validate
from poseidon.profile.importers.cell import Cell, Fact, Part, Place, Reading, byte_cells, time_cells
from poseidon.profile.importers.element_bytes import element_bytes
from poseidon.profile.importers.numbers import MIB, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import key_of
from poseidon.profile.importers.stack import Stack, stack_of
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import RowKey

NAME = "metis"
STATE_BYTES = {2: 18.0, 4: 20.0}
ROUNDING_BYTES = MIB
"""Memory that is smaller than the state by less than this leaves no activations."""

Amount = Annotated[float, Field(strict=True, ge=0, le=1e18)]
Amounts = Annotated[tuple[Amount, ...], Field(min_length=1, max_length=10_000)]


class _Peer(FileModel):
    model_config = ConfigDict(extra="ignore")


class _Parameters(_Peer):
    parameters_per_layer_bytes: Amounts
    activation_parameters_bytes: Amounts | None = None


class _Model(_Peer):
    model_name: Annotated[str, Field(strict=True, min_length=1, max_length=100)] = "unnamed"
    parameters: _Parameters


class _Time(_Peer):
    layer_compute_total_ms: Amounts


class _Memory(_Peer):
    layer_memory_total_mb: Amounts


class _Own(_Peer):
    """What `poseidon import --to metis` adds, so that nothing is lost on the way back."""

    accelerator: Annotated[str, Field(strict=True, min_length=1, max_length=100)]
    seq_length: Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
    precision: Precision
    recompute: Recompute
    layer_forward_ms: Amounts
    layer_backward_ms: Amounts
    layer_activation_bytes: Amounts
    layer_recomputed_bytes: Amounts

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        """Its lists by field."""
        return {
            "poseidon.layer_forward_ms": self.layer_forward_ms,
            "poseidon.layer_backward_ms": self.layer_backward_ms,
            "poseidon.layer_activation_bytes": self.layer_activation_bytes,
            "poseidon.layer_recomputed_bytes": self.layer_recomputed_bytes,
        }


class _File(_Peer):
    model: _Model
    execution_time: _Time
    execution_memory: _Memory
    poseidon: _Own | None = None


def is_metis(data: Any) -> bool:
    """Whether a JSON document looks like one."""
    return isinstance(data, dict) and {"model", "execution_time", "execution_memory"} <= data.keys()


def read_metis(path: Path, options: ImportOptions) -> Reading:
    """The rows of one file: embedding, each layer type, head."""
    file = file_label(path)
    record = validate(_File, dict(read_document(path).data), file)
    checked = Checked(file)
    at = key_of(path, options, checked)
    if record.poseidon is not None and options.accelerator is None:
        name = record.poseidon.accelerator
        at = RowKey(options.rename.get(name, name), at.tp, at.micro_batch_size)
    totals = record.execution_time.layer_compute_total_ms
    stack = stack_of(totals, options.model)
    if isinstance(stack, str):
        checked.say("execution_time.layer_compute_total_ms", stack)
    _same_lengths(record, checked)
    checked.finish()
    assert isinstance(stack, Stack)
    size = _element_bytes(record, stack, at, options, checked)
    checked.finish()
    cells = [*_times(record, stack, at, options, file), *_bytes(record, stack, at, size, options, checked)]
    checked.finish()
    return Reading(
        tuple(cells),
        model=(Fact(record.model.model_name, Place(file, "model.model_name")),),
        **_facts(record, at, size, options.model, file),
        notes=_notes(record, size, options),
    )


def _same_lengths(record: _File, checked: Checked) -> None:
    expected = len(record.execution_time.layer_compute_total_ms)
    lists = {
        "model.parameters.parameters_per_layer_bytes": record.model.parameters.parameters_per_layer_bytes,
        "execution_memory.layer_memory_total_mb": record.execution_memory.layer_memory_total_mb,
        "model.parameters.activation_parameters_bytes": record.model.parameters.activation_parameters_bytes,
    }
    if record.poseidon is not None:
        lists |= record.poseidon.lists
    for field, entries in lists.items():
        if entries is not None and len(entries) != expected:
            checked.say(field, f"has {len(entries)} entries, but layer_compute_total_ms has {expected}")


def _element_bytes(record: _File, stack: Stack, at: RowKey, options: ImportOptions, checked: Checked) -> int:
    if record.poseidon is not None:
        return ELEMENT_BYTES
    weights = stack.values(record.model.parameters.parameters_per_layer_bytes)
    return element_bytes(weights, at, options, checked, "model.parameters.parameters_per_layer_bytes")


def _times(record: _File, stack: Stack, at: RowKey, options: ImportOptions, file: str) -> Iterator[Cell]:
    place = Place(file, "execution_time.layer_compute_total_ms")
    own = record.poseidon
    if own is not None:
        backward = stack.values(own.layer_backward_ms)
        for part, forward in stack.values(own.layer_forward_ms).items():
            yield from time_cells(part, at, forward, backward[part], place, "")
        return
    how = f"forward = total / {1 + options.backward_ratio:g}, backward = the rest"
    for part, total in stack.values(record.execution_time.layer_compute_total_ms).items():
        forward = total / (1 + options.backward_ratio)
        yield from time_cells(part, at, forward, total - forward, place, how)


def _bytes(
    record: _File, stack: Stack, at: RowKey, size: int, options: ImportOptions, checked: Checked
) -> Iterator[Cell]:
    place = Place(checked.file, "execution_memory.layer_memory_total_mb")
    memory = stack.values(record.execution_memory.layer_memory_total_mb)
    weights = stack.values(record.model.parameters.parameters_per_layer_bytes)
    state = STATE_BYTES[size] if options.state_bytes is None else options.state_bytes
    for part, mib in memory.items():
        parameters = weights[part] / size
        kept = mib * MIB - parameters * state
        how = f"activations = memory - {state:g} bytes x parameters"
        if record.poseidon is not None:
            kept, how = stack.values(record.poseidon.layer_activation_bytes)[part], ""
            again = stack.values(record.poseidon.layer_recomputed_bytes)[part]
            yield Cell(part, at, "recomputed_bytes", again, place)
        elif kept < -ROUNDING_BYTES:
            checked.say(place.field, _too_little(part, mib, parameters, state))
        yield from byte_cells(part, at, parameters * ELEMENT_BYTES, max(0.0, kept), place, how)


def _too_little(part: Part, mib: float, parameters: float, state: float) -> str:
    needed = parameters * state / MIB
    return (
        f"{mib:,.1f} MB of the {part} is less than the training state of its {parameters:,.0f} parameters at {state:g} "
        f"bytes each ({needed:,.1f} MB): give --state-bytes, the bytes a parameter takes in these numbers"
    )


def _facts(record: _File, at: RowKey, size: int, model: Model | None, file: str) -> dict[str, Any]:
    if record.poseidon is not None:
        place = Place(file, "poseidon")
        own = record.poseidon
        return {
            "seq_length": (Fact(own.seq_length, place),),
            "precision": (Fact(own.precision, place),),
            "recompute": (Fact(own.recompute, place),),
        }
    outputs = record.model.parameters.activation_parameters_bytes
    if model is None or outputs is None:
        return {}
    tokens = outputs[1] / (model.hidden_size * size)
    if tokens < 1 or tokens % at.micro_batch_size:
        return {}
    place = Place(file, "model.parameters.activation_parameters_bytes")
    return {"seq_length": (Fact(int(tokens // at.micro_batch_size), place),)}


def _notes(record: _File, size: int, options: ImportOptions) -> tuple[str, ...]:
    if record.poseidon is not None:
        return ("metis: written by poseidon; nothing had to be derived",)
    measured = (
        "" if size == ELEMENT_BYTES else f", measured with {size}-byte weights (activations are kept as measured)"
    )
    return (
        f"metis: forward and backward from their sum, backward = {options.backward_ratio:g} x forward",
        f"metis: weights at {ELEMENT_BYTES} bytes a parameter{measured}",
        "metis: activations = layer memory - training state",
        "metis: optimizer and batch generator times have no place in a profile and were left out",
    )
