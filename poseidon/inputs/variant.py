"""Variants of an experiment: parts replaced, single fields changed, and everything checked again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from poseidon.inputs.cluster_file import cluster_from_mapping
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.experiment_file import ANALYTIC, ExperimentFile, resolved_cluster, resolved_model, resolved_profile
from poseidon.inputs.loading import Loading
from poseidon.inputs.model_file import default_name
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.validation import validate

REPLACEABLE_PARTS = ("model", "cluster", "profile")
"""The parts of an experiment that are files of their own."""


@dataclass(frozen=True)
class VariantBase:
    """What variants start from: the parts of an experiment, each right for itself, with all defaults filled in.

    The parts have not been checked against each other: only a whole variant is.
    """

    fields: Mapping[str, Any]
    """`name`, `model`, `cluster`, `training` and `search` as JSON-able values."""
    profile: str
    """"analytic", or the absolute path of a profile file: a variant may be used in another working directory."""
    files: Mapping[str, str]
    """SHA-256 of every file that was read, by its path relative to the folder of `source`."""
    source: SourceFile
    """The file that asks for the variants; paths in its changes are relative to it."""

    def variant(self, change: Callable[[dict[str, Any]], None]) -> Experiment:
        """The experiment after `change` has edited its fields in place; raises InputError with every mistake.

        An accelerator may be the path of a file, relative to `source`, as in a cluster file.
        """
        fields, loading = deepcopy(dict(self.fields)), Loading()
        change(fields)
        cluster = loading.attempt(
            lambda: cluster_from_mapping(fields["cluster"], self.source, "cluster", loading, ("cluster",))
        )
        loading.finish()
        parts = {"cluster": cluster, "profile": self.profile, "files": {**self.files, **loading.files}}
        return validate(Experiment, {**fields, **parts}, self.source.label)


def load_variant_base(
    source: SourceFile, experiment: str, place: Sequence[str | int], replaced: Mapping[str, Any]
) -> VariantBase:
    """Loads the experiment that `source` names at `place`, with some of its `REPLACEABLE_PARTS` replaced.

    What replaces a part is a path relative to `source`, or the part itself. Raises InputError with every mistake.
    """
    loading, target = Loading(), source.refer(experiment)
    data = loading.read_referred(target, source, place).data
    name = default_name(target.path)
    origin = {part: source if part in replaced else target for part in REPLACEABLE_PARTS}
    data = {"name": name, **data, **replaced}
    model = resolved_model(data, origin["model"], name, loading)
    cluster = resolved_cluster(data, origin["cluster"], name, loading)
    profile = resolved_profile(data.get("profile"), origin["profile"], loading)
    profile = profile if profile == ANALYTIC else os.path.abspath(profile)
    settings = loading.attempt(lambda: validate(ExperimentFile, data, target.label))
    loading.finish()
    assert model is not None
    assert cluster is not None
    assert settings is not None
    parts = {"model": model, "cluster": cluster, "training": settings.training, "search": settings.search}
    dumped = {part: record.model_dump(mode="json") for part, record in parts.items()}
    return VariantBase({"name": settings.name, **dumped}, profile, loading.files, source)
