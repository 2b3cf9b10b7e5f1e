"""An experiment: one model, one cluster, one training job, one search; and how to load it from files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from poseidon.inputs.cluster import Cluster
from poseidon.inputs.experiment_checks import experiment_problems
from poseidon.inputs.experiment_file import (
    ANALYTIC,
    ExperimentFile,
    resolved_cluster,
    resolved_model,
    resolved_profile,
)
from poseidon.inputs.fields import Name
from poseidon.inputs.file_model import FileModel, Problem
from poseidon.inputs.loading import Loading
from poseidon.inputs.model import Model
from poseidon.inputs.model_file import default_name
from poseidon.inputs.search import SearchSettings
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.training import Training
from poseidon.inputs.validation import validate

__all__ = ["ANALYTIC", "COMMAND_LINE", "Experiment", "build_experiment", "experiment_from_resolved", "load_experiment"]

COMMAND_LINE = SourceFile(Path("command line"), "command line")
"""Where settings without a file come from; paths there are relative to the working directory."""


class Experiment(FileModel):
    """Everything that a search needs, with all references to files resolved."""

    name: Name
    """What the experiment is called in results."""
    model: Model
    """The model to train."""
    cluster: Cluster
    """The cluster to train it on."""
    training: Training
    """The training job."""
    profile: str = ANALYTIC
    """"analytic", or the path of a profile file as it can be opened from the working directory of the load."""
    search: SearchSettings = SearchSettings()
    """The search settings."""
    files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of every file that was read, by its path relative to the experiment file."""

    def record_checks(self) -> Iterator[Problem]:
        """Model, cluster, training and search fit together."""
        return experiment_problems(self)

    def resolved(self) -> dict[str, Any]:
        """The whole experiment as JSON-able values; `experiment_from_resolved` gives back an equal one."""
        return self.model_dump(mode="json")


def experiment_from_resolved(data: Mapping[str, Any], file: str = "") -> Experiment:
    """The experiment that `Experiment.resolved` described; `file` names the source in errors. Raises InputError."""
    return validate(Experiment, data, file)


def load_experiment(
    path: str | Path,
    *,
    training: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    profile: str | None = None,
) -> Experiment:
    """Loads an experiment file with all files that it refers to.

    `training`, `search` and `profile` (options of the command line) replace the file's values; a `profile` given here
    is relative to the working directory. Raises InputError with every mistake of all files.
    """
    loading, source = Loading(), SourceFile.first(path)
    data = {"name": default_name(source.path), **loading.read(source).data}
    for key, changes in (("training", training or {}), ("search", search or {})):
        given = data.get(key, {})
        if changes and isinstance(given, Mapping):
            data[key] = {**given, **changes}
    if profile is None:
        return _assembled(data, source, source, loading)
    return _assembled({**data, "profile": profile}, source, COMMAND_LINE, loading)


def build_experiment(
    model: str | Path,
    cluster: str | Path,
    global_batch_size: int,
    seq_length: int,
    *,
    training: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    profile: str = ANALYTIC,
) -> Experiment:
    """An experiment without an experiment file, from the paths of a model and a cluster.

    Further `training` and `search` settings have their defaults. Raises InputError with every mistake of all files.
    """
    batch = {"global_batch_size": global_batch_size, "seq_length": seq_length}
    data = {
        "name": f"{default_name(Path(model))} on {default_name(Path(cluster))}"[:100],
        "model": str(model),
        "cluster": str(cluster),
        "training": {**(training or {}), **batch},
        "search": search or {},
        "profile": profile,
    }
    return _assembled(data, COMMAND_LINE, COMMAND_LINE, Loading())


def _assembled(data: Mapping[str, Any], source: SourceFile, profile_source: SourceFile, loading: Loading) -> Experiment:
    """Resolves the parts of an experiment file's `data`, reports all their mistakes, and puts the parts together.

    The profile's path is relative to `profile_source`, all others to `source`.
    """
    name = default_name(source.path)
    model = resolved_model(data, source, name, loading)
    cluster = resolved_cluster(data, source, name, loading)
    profile = resolved_profile(data.get("profile"), profile_source, loading)
    settings = loading.attempt(lambda: validate(ExperimentFile, data, source.label))
    loading.finish()
    assert model is not None
    assert cluster is not None
    assert settings is not None
    parts = {
        "name": settings.name,
        "model": model,
        "cluster": cluster,
        "training": settings.training,
        "profile": profile,
        "search": settings.search,
        "files": loading.files,
    }
    return validate(Experiment, parts, source.label)
