"""A profile as Metis' files, so that both planners can be run on the same numbers (format: `metis`).

Derived: layer_compute_total_ms = forward + backward; layer_memory_total_mb = (18 bytes x parameters + activations +
what recomputation brings back) / 2^20; activation_parameters_bytes = 2 bytes x tokens x hidden size (the head: x
vocabulary / TP); optimizer and batch generator times are 0, because a profile has none. A block `poseidon`, which Metis
does not look at, keeps what Metis' own fields lose, so that an import of these files gives the profile back exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.model import Model
from poseidon.inputs.training import Recompute
from poseidon.profile.importers.metis import STATE_BYTES
from poseidon.profile.importers.numbers import MIB
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import LayerKey, Profile, Row, RowKey
from poseidon.whole_file import write_whole_text

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]")
"""Metis takes the accelerator from the file's name up to the first underscore, and knows letters and digits."""


@dataclass(frozen=True)
class MetisFile:
    """One file's name and content."""

    name: str
    content: Mapping[str, Any]


def metis_files(profile: Profile, model: Model) -> tuple[MetisFile, ...]:
    """A file for each accelerator, TP degree and micro-batch size, in the order of the profile.

    Raises InputError where rows are missing, where the profile has several recomputation modes, or where two
    accelerators get the same name.
    """
    modes = {key.recompute for key in profile.layers}
    if len(modes) != 1:
        found = ", ".join(sorted(modes))
        raise InputError(Mistake("", "layers", f"have the recomputation modes {found}: a Metis profile has one"))
    keys = tuple(dict.fromkeys(key.at for key in profile.layers))
    names = _device_names(keys)
    (recompute,) = modes
    return tuple(
        MetisFile(
            f"DeviceType.{names[at.accelerator]}_tp{at.tp}_bs{at.micro_batch_size}.json",
            _content(profile, model, at, recompute),
        )
        for at in keys
    )


def _device_names(keys: tuple[RowKey, ...]) -> dict[str, str]:
    names = {at.accelerator: NOT_IN_NAMES.sub("", at.accelerator) for at in keys}
    taken: dict[str, str] = {}
    for accelerator, name in names.items():
        if not name or name in taken:
            message = f"{accelerator} would be called {name!r} in Metis, like {taken.get(name, 'nothing')}: rename one"
            raise InputError(Mistake("", "layers", message))
        taken[name] = accelerator
    return names


def _stack(profile: Profile, model: Model, at: RowKey, recompute: Recompute) -> list[Row]:
    """The rows of embedding, every layer and head."""
    wanted = [LayerKey(at, name, recompute) for name in model.layer_types]
    missing = [f"layers {key}" for key in dict.fromkeys(wanted) if key not in profile.layers]
    missing += [f"{name} {at}" for name, rows in _vocabulary(profile).items() if at not in rows]
    if missing:
        raise InputError(Mistake("", "", f"the profile has no row for {', '.join(missing)}"))
    return [profile.embedding[at], *(profile.layers[key] for key in wanted), profile.head[at]]


def _vocabulary(profile: Profile) -> dict[str, Mapping[RowKey, Row]]:
    return {"embedding": profile.embedding, "head": profile.head}


def _content(profile: Profile, model: Model, at: RowKey, recompute: Recompute) -> dict[str, Any]:
    rows = _stack(profile, model, at, recompute)
    state = STATE_BYTES[ELEMENT_BYTES]
    weights = [row.weight_bytes for row in rows]
    output = float(at.micro_batch_size * profile.seq_length * model.hidden_size * ELEMENT_BYTES)
    logits = float(at.micro_batch_size * profile.seq_length * model.vocab_size * ELEMENT_BYTES) / at.tp
    totals = [row.forward_ms + row.backward_ms for row in rows]
    memory = [
        (row.weight_bytes / ELEMENT_BYTES * state + row.activation_bytes + row.recomputed_bytes) / MIB for row in rows
    ]
    return {
        "model": {
            "model_name": profile.model,
            "num_layers": len(rows),
            "parameters": {
                "total_parameters_bytes": sum(weights),
                "parameters_per_layer_bytes": weights,
                "activation_parameters_bytes": [output] * (len(rows) - 1) + [logits],
            },
        },
        "execution_time": {
            "total_time_ms": sum(totals),
            "forward_backward_time_ms": sum(totals),
            "batch_generator_time_ms": 0.0,
            "layernorm_grads_all_reduce_time_ms": 0.0,
            "embedding_grads_all_reduce_time_ms": 0.0,
            "optimizer_time_ms": 0.0,
            "layer_compute_total_ms": totals,
        },
        "execution_memory": {"total_memory_mb": sum(memory), "layer_memory_total_mb": memory},
        "poseidon": _own(profile, at, recompute, rows),
    }


def _own(profile: Profile, at: RowKey, recompute: Recompute, rows: list[Row]) -> dict[str, Any]:
    return {
        "accelerator": at.accelerator,
        "seq_length": profile.seq_length,
        "precision": profile.precision,
        "recompute": recompute,
        "layer_forward_ms": [row.forward_ms for row in rows],
        "layer_backward_ms": [row.backward_ms for row in rows],
        "layer_activation_bytes": [row.activation_bytes for row in rows],
        "layer_recomputed_bytes": [row.recomputed_bytes for row in rows],
    }


def write_metis(profile: Profile, model: Model, directory: Path) -> tuple[Path, ...]:
    """Writes the files into a directory, which is made; InputError where that can't be."""
    written = []
    for file in metis_files(profile, model):
        target = directory / file.name
        write_whole_text(target, json.dumps(file.content, indent=1) + "\n")
        written.append(target)
    return tuple(written)
