"""Fills what the files lack: weights and activations from the model's formulas, rows from the analytic profile."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import build_experiment
from poseidon.inputs.model import Model
from poseidon.inputs.training import Recompute
from poseidon.profile.analytic import analytic_profile
from poseidon.profile.importers.cell import QUANTITIES, VOCABULARY, Cell, Part, Place, Reading, byte_cells, time_cells
from poseidon.profile.importers.merge import Merged
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.layer import kept_activation_bytes, layer_operations, recomputed_bytes
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.profile import Profile, Row, RowKey
from poseidon.profile.vocabulary import embedding_operations, head_operations

MODEL_PLACE = Place("--model")
ANALYTIC = "analytic"
"""How a row says that it was filled."""


def parts_of(model: Model | None, merged: Merged) -> tuple[Part, ...]:
    """What every (accelerator, TP, micro-batch size) needs a row for."""
    layers: tuple[Part, ...] = model.distinct_layer_types if model else merged.layer_types
    return (*layers, *VOCABULARY)


def model_bytes(merged: Merged, model: Model, seq_length: int, recompute: Recompute) -> Reading:
    """Weights and activations of the rows that have times but lack them, as the analytic profile counts them."""
    cells: list[Cell] = []
    for part in parts_of(model, merged):
        for at in merged.keys:
            lacking = merged.lacking(part, at, QUANTITIES)
            if "forward_ms" in lacking:
                continue
            if "activation_bytes" in lacking:
                lacking = (*lacking, "recomputed_bytes")
            cells += [cell for cell in _formula(part, at, model, seq_length, recompute) if cell.quantity in lacking]
    kinds = {"weights": "weight_bytes", "activations": "activation_bytes"}
    names_of: dict[tuple[Part, ...], list[str]] = {}
    for name, quantity in kinds.items():
        parts = tuple(dict.fromkeys(cell.part for cell in cells if cell.quantity == quantity))
        names_of.setdefault(parts, []).append(name)
    notes = [
        f"model: {' and '.join(names)} of {', '.join(parts)} by the formulas of docs/profile.md ({model.name})"
        for parts, names in names_of.items()
        if parts
    ]
    return Reading(tuple(cells), notes=tuple(notes))


def _formula(part: Part, at: RowKey, model: Model, seq_length: int, recompute: Recompute) -> Iterator[Cell]:
    batch = MicroBatch(at.micro_batch_size, seq_length, at.tp)
    again = 0.0
    if part == "embedding":
        kept = sum(operation.kept.total for operation in embedding_operations(model, batch))
        parameters = model.embedding_parameters
    elif part == "head":
        kept = sum(operation.kept.total for operation in head_operations(model, batch))
        parameters = model.head_parameters + (model.output_projection_parameters if model.tied_embeddings else 0)
    else:
        operations = layer_operations(model, part, batch)
        kept = kept_activation_bytes(operations, model, batch, recompute)
        again = recomputed_bytes(operations, model, batch, recompute)
        parameters = model.layer_parameters(part)
    how = "formulas of docs/profile.md"
    yield from byte_cells(part, at, parameters * ELEMENT_BYTES / at.tp, kept, MODEL_PLACE, how)
    yield Cell(part, at, "recomputed_bytes", again, MODEL_PLACE, how)


def analytic_rows(merged: Merged, options: ImportOptions, seq_length: int, recompute: Recompute) -> Reading:
    """Rows (or what rows lack) from the analytic profile, for the cluster's accelerators and TP degrees."""
    if options.model is None or options.model_file is None or options.cluster is None:
        raise InputError(Mistake("", "--fill", "needs --model and --cluster, of which the rows are made"))
    sizes = sorted({at.micro_batch_size for at in merged.keys} | set(options.micro_batch_sizes))
    experiment = build_experiment(
        options.model_file,
        options.cluster,
        lcm(*sizes),
        seq_length,
        training={"micro_batch_sizes": sizes, "recompute": recompute},
    )
    profile = analytic_profile(experiment)
    unknown = sorted({at.accelerator for at in merged.keys} - set(experiment.cluster.accelerators))
    warnings = tuple(
        f"{name} is not in {options.cluster} ({', '.join(experiment.cluster.accelerators)}): --rename {name}=NAME"
        for name in unknown
    )
    cells = [cell for cell in _analytic_cells(profile) if _wanted(merged, cell)]
    return Reading(tuple(cells), notes=(f"analytic: rows marked so, for {experiment.cluster.name}",), warnings=warnings)


def _wanted(merged: Merged, cell: Cell) -> bool:
    """What a row lacks; what recomputation brings back goes with the activations."""
    if cell.quantity == "recomputed_bytes":
        return bool(merged.lacking(cell.part, cell.at, ("activation_bytes",)))
    return bool(merged.lacking(cell.part, cell.at, (cell.quantity,)))


def _analytic_cells(profile: Profile) -> Iterator[Cell]:
    for layer_key, row in profile.layers.items():
        yield from _row_cells(layer_key.layer_type, layer_key.at, row)
    for at, row in profile.embedding.items():
        yield from _row_cells("embedding", at, row)
    for at, row in profile.head.items():
        yield from _row_cells("head", at, row)


def _row_cells(part: Part, at: RowKey, row: Row) -> Iterator[Cell]:
    place = Place(ANALYTIC)
    yield from time_cells(part, at, row.forward_ms, row.backward_ms, place, ANALYTIC)
    yield from byte_cells(part, at, row.weight_bytes, row.activation_bytes, place, ANALYTIC)
    yield Cell(part, at, "recomputed_bytes", row.recomputed_bytes, place, ANALYTIC)
