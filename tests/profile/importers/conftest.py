from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.inputs.model import Model
from poseidon.inputs.model_file import load_model
from poseidon.profile.importers import Imported, ImportOptions, import_profile
from poseidon.profile.profile import LayerKey, Row, RowKey

DATA = Path(__file__).parent / "data"
MODELS = Path(__file__).parents[3] / "configs" / "models"
TINY_2048 = {
    "name": "tiny-2048",
    "num_layers": 8,
    "hidden_size": 2048,
    "ffn_hidden_size": 8192,
    "num_attention_heads": 16,
    "vocab_size": 32000,
    "gated_mlp": False,
}
"""The model of the made-up Megatron logs."""

Importer = Callable[..., Imported]


def layer(imported: Imported, accelerator: str, tp: int, size: int) -> Row:
    """The row of a dense layer."""
    return imported.profile.layers[LayerKey(RowKey(accelerator, tp, size), "dense", "none")]


@pytest.fixture
def opt_350() -> Model:
    return load_model(MODELS / "opt-350.yaml")


@pytest.fixture
def llama_7b() -> Model:
    return load_model(MODELS / "llama-2-7b.yaml")


@pytest.fixture
def tiny_2048() -> Model:
    return Model.model_validate(TINY_2048)


@pytest.fixture
def import_files() -> Importer:
    """Imports files of the data folder (or given paths) with options."""

    def call(*files: str | Path, format_name: str | None = None, **options: Any) -> Imported:
        paths = [DATA / file if isinstance(file, str) else file for file in files]
        return import_profile(paths, ImportOptions(**options), format_name)

    return call
