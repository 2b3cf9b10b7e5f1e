"""Puts the profile files of several machines together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.reading import read_document
from poseidon.profile.file import SCHEMA, read_profile
from poseidon.profile.measure.document import source_of

SHARED = ("model", "seq_length", "precision", "sequence_parallel")
"""What must be the same in all files that say it."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "layers": ("accelerator", "tp", "micro_batch_size", "layer_type", "recompute"),
    "embedding": ("accelerator", "tp", "micro_batch_size"),
    "head": ("accelerator", "tp", "micro_batch_size"),
    "transfers": ("from", "to", "link", "bytes"),
    "all_reduce": ("accelerator", "tp", "dp", "link", "bytes"),
}
"""The tables of a profile file, and the fields that tell their rows apart."""


def merged_profiles(paths: Sequence[Path]) -> dict[str, Any]:
    """One document with the rows of all files; a row that several files give alike is kept once.

    Raises InputError with every conflict: files of different jobs or models, and rows that two files give differently.
    """
    for path in paths:
        read_profile(path)  # names every mistake of a file
    documents = [(str(path), read_document(path).data) for path in paths]
    if mistakes := list(_different_jobs(documents)):
        raise InputError(mistakes)
    tables = {table: _rows(documents, table, mistakes) for table in KEYS}
    if mistakes:
        raise InputError(mistakes)
    taken = [run for _, data in documents for run in data.get("taken", ())]
    taken = [run for index, run in enumerate(taken) if run not in taken[:index]]
    shared = {name: data[name] for name in SHARED for _, data in documents if name in data}
    return {"schema": SCHEMA, **shared, "source": _source(documents, taken), "taken": taken, **tables}


def _different_jobs(documents: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Mistake]:
    first_path, first = documents[0]
    models = _model_hashes(first)
    for path, data in documents[1:]:
        for name in SHARED:
            if None not in (data.get(name), first.get(name)) and data[name] != first[name]:
                yield Mistake(path, name, f"is {data.get(name)!r}, but {first.get(name)!r} in {first_path}")
        if models and (others := _model_hashes(data)) and others != models:
            yield Mistake(path, "taken", f"is of another model than {first_path}: the two descriptions differ")


def _model_hashes(data: Mapping[str, Any]) -> set[str]:
    return {run["model_sha256"] for run in data.get("taken", ())}


def _rows(
    documents: Sequence[tuple[str, Mapping[str, Any]]], table: str, mistakes: list[Mistake]
) -> list[Mapping[str, Any]]:
    kept: dict[tuple[Any, ...], tuple[str, Mapping[str, Any]]] = {}
    for path, data in documents:
        for index, row in enumerate(data.get(table, ())):
            key = tuple(row.get(name) for name in KEYS[table])
            other_path, other = kept.setdefault(key, (path, row))
            if other != row:
                where = ", ".join(f"{name} {value}" for name, value in zip(KEYS[table], key, strict=True))
                message = f"the row for ({where}) differs from that in {other_path}; keep one of them"
                mistakes.append(Mistake(path, f"{table}[{index}]", message))
    return [row for _, row in kept.values()]


def _source(documents: Sequence[tuple[str, Mapping[str, Any]]], taken: Sequence[Mapping[str, Any]]) -> str:
    """Of measured runs one sentence; of other files (imported ones) what each says itself."""
    others = [str(data.get("source", path)) for path, data in documents if not data.get("taken")]
    return "; ".join(([source_of(taken)] if taken else []) + others)
