"""The parts of an experiment file, and how each is resolved; used by `experiment`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from poseidon.inputs.cluster import Cluster
from poseidon.inputs.cluster_file import cluster_from_mapping
from poseidon.inputs.fields import Name
from poseidon.inputs.file_model import PROBLEM, FileModel, shown
from poseidon.inputs.loading import Loading
from poseidon.inputs.model import Model
from poseidon.inputs.model_file import default_name, model_from_mapping
from poseidon.inputs.search import SearchSettings
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.training import Training

ANALYTIC = "analytic"
"""The value of `profile` that asks for the analytic profile instead of a profile file."""


def _reference(value: Any) -> Any:
    if (isinstance(value, str) and value) or isinstance(value, Mapping):
        return value
    message = f"expected the path of a file or a mapping, got {shown(value)}"
    raise PydanticCustomError(PROBLEM, "{message}", {"message": message})


Reference = Annotated[Any, BeforeValidator(_reference)]
"""The path of a file, relative to the file that names it, or the content itself."""


class ExperimentFile(FileModel):
    """What an experiment file holds."""

    name: Name
    """What the experiment is called in results (default, filled in by the loader: the file's name)."""
    model: Reference
    """The model: a path of a model file or Hugging Face config.json, or a mapping."""
    cluster: Reference
    """The cluster: a path or a mapping."""
    training: Training
    """The training job."""
    profile: Annotated[str, Field(min_length=1)] = ANALYTIC
    """"analytic", or the path of a profile file."""
    search: SearchSettings = SearchSettings()
    """The search settings."""


@dataclass(frozen=True)
class _Content:
    """A mapping, the file that holds it and its place in that file."""

    data: Mapping[str, Any]
    source: SourceFile
    prefix: tuple[str, ...]
    name: str


def resolved_model(data: Mapping[str, Any], source: SourceFile, name: str, loading: Loading) -> Model | None:
    """The experiment's model, or None with the mistakes left in `loading`."""

    def resolve() -> Model | None:
        content = _content(data.get("model"), "model", source, name, loading)
        if content is None:
            return None
        return model_from_mapping(content.data, content.source.label, content.name, content.prefix)

    return loading.attempt(resolve)


def resolved_cluster(data: Mapping[str, Any], source: SourceFile, name: str, loading: Loading) -> Cluster | None:
    """The experiment's cluster, or None with the mistakes left in `loading`."""

    def resolve() -> Cluster | None:
        content = _content(data.get("cluster"), "cluster", source, name, loading)
        if content is None:
            return None
        return cluster_from_mapping(content.data, content.source, content.name, loading, content.prefix)

    return loading.attempt(resolve)


def resolved_profile(profile: Any, source: SourceFile, loading: Loading) -> str:
    """What `Experiment.profile` holds; a file that cannot be read is left in `loading` as a mistake."""
    if not isinstance(profile, str) or profile in ("", ANALYTIC):
        return ANALYTIC
    target = source.refer(profile)
    loading.attempt(lambda: loading.read_referred(target, source, ("profile",)))
    return str(target.path)


def _content(reference: Any, key: str, source: SourceFile, name: str, loading: Loading) -> _Content | None:
    """The mapping that `reference` is or names; None when it is neither (which `ExperimentFile` reports)."""
    if isinstance(reference, Mapping):
        return _Content(reference, source, (key,), name)
    if not isinstance(reference, str) or not reference:
        return None
    target = source.refer(reference)
    document = loading.read_referred(target, source, (key,))
    return _Content(document.data, target, (), default_name(target.path))
