"""Loads a cluster from its file; its accelerators may refer to files of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.limits import MAX_ACCELERATORS
from poseidon.inputs.loading import Loading
from poseidon.inputs.model_file import default_name
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.validation import validate

_STAND_IN = {"peak_tflops": 1, "memory_gb": 1}
"""Takes the place of an accelerator whose file is wrong, so that the rest of the cluster is checked too."""


def load_cluster(path: str | Path) -> Cluster:
    """The cluster of a file; raises InputError with every mistake."""
    loading, source = Loading(), SourceFile.first(path)
    data = loading.read(source).data
    cluster = loading.attempt(lambda: cluster_from_mapping(data, source, default_name(source.path), loading))
    loading.finish()
    assert cluster is not None
    return cluster


def cluster_from_mapping(
    data: Mapping[str, Any], source: SourceFile, name: str, loading: Loading, prefix: Sequence[str | int] = ()
) -> Cluster:
    """The cluster that a mapping in `source` describes.

    An entry of `accelerators` is a mapping, the path of a file with one, or a mapping with `from`: such a path, and the
    other keys replace that file's. Mistakes of those files are left in `loading`.
    """
    accelerators = data.get("accelerators")
    if isinstance(accelerators, Mapping):
        if len(accelerators) > MAX_ACCELERATORS:
            message = f"has {len(accelerators)} entries: at most {MAX_ACCELERATORS:,} are accepted"
            raise InputError(Mistake(source.label, field_path((*prefix, "accelerators")), message))
        entries = {
            key: _accelerator_entry(entry, source, (*prefix, "accelerators", key), loading)
            for key, entry in accelerators.items()
        }
        data = {**data, "accelerators": entries}
    return validate(Cluster, {"name": name, **data}, source.label, prefix)


def _accelerator_entry(entry: Any, source: SourceFile, place: Sequence[str | int], loading: Loading) -> Any:
    reference = entry.get("from") if isinstance(entry, Mapping) and "from" in entry else entry
    if entry is reference and not isinstance(entry, str):
        return entry
    overrides = {key: value for key, value in entry.items() if key != "from"} if isinstance(entry, Mapping) else {}
    if not isinstance(reference, str) or not reference:
        message = f"expected the path of an accelerator's file, got {shown(reference)}"
        loading.mistakes.append(Mistake(source.label, field_path((*place, "from")), message))
        return {**_STAND_IN, **overrides}
    base = loading.attempt(lambda: _accelerator_data(source.refer(reference), source, place, loading))
    return {**(_STAND_IN if base is None else base), **overrides}


def _accelerator_data(
    target: SourceFile, source: SourceFile, place: Sequence[str | int], loading: Loading
) -> Mapping[str, Any]:
    """The checked content of an accelerator's file."""
    data = loading.read_referred(target, source, place).data
    validate(Accelerator, data, target.label)
    return data
