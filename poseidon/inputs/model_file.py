"""Loads a model from its file: this project's YAML or JSON, or a Hugging Face config.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from poseidon.inputs.huggingface import model_from_huggingface
from poseidon.inputs.loading import Loading
from poseidon.inputs.model import Model
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.validation import validate


def load_model(path: str | Path) -> Model:
    """The model of a file; raises InputError with every mistake."""
    loading, source = Loading(), SourceFile.first(path)
    data = loading.read(source).data
    model = loading.attempt(lambda: model_from_mapping(data, source.label, default_name(source.path)))
    loading.finish()
    assert model is not None
    return model


def model_from_mapping(data: Mapping[str, Any], file: str, name: str, prefix: Sequence[str | int] = ()) -> Model:
    """The model that a mapping describes: a Hugging Face configuration when it has a `model_type`."""
    if "model_type" in data:
        return model_from_huggingface(data, file, name, prefix)
    return validate(Model, {"name": name, **data}, file, prefix)


def default_name(path: Path) -> str:
    """What the content of a file is called when it does not say: as the file, or as the folder of a config.json."""
    name = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    return "".join(character for character in name if character.isprintable())[:100] or "unnamed"
