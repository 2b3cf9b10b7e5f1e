"""Converts a Hugging Face config.json to a `Model`: one class per family, with that family's key names and defaults.

Sizes must be given. Flags have the default of the family's configuration class in `transformers`, because a config.json
leaves out what equals the default. Keys that do not change shapes are ignored, and so are the multi-token-prediction
layers of DeepSeek-V3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import nearest, shown
from poseidon.inputs.huggingface_deepseek import DeepSeekV2, DeepSeekV3
from poseidon.inputs.huggingface_family import Family
from poseidon.inputs.huggingface_gpt import Gpt2, Opt
from poseidon.inputs.huggingface_llama import Llama, Mistral, Mixtral, Qwen2, Qwen3, Qwen3Moe
from poseidon.inputs.model import Model
from poseidon.inputs.validation import validate

_FAMILIES: dict[str, type[Family]] = {
    "llama": Llama,
    "mistral": Mistral,
    "mixtral": Mixtral,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "qwen3_moe": Qwen3Moe,
    "deepseek_v2": DeepSeekV2,
    "deepseek_v3": DeepSeekV3,
    "gpt2": Gpt2,
    "opt": Opt,
}


def model_from_huggingface(data: Mapping[str, Any], file: str, name: str, prefix: Sequence[str | int] = ()) -> Model:
    """The model that a Hugging Face configuration describes; raises InputError, also for unknown families."""
    model_type = data.get("model_type")
    family = _FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        suggestion = nearest(model_type, _FAMILIES)
        hint = f"did you mean {suggestion!r}? " if suggestion else ""
        message = f"{shown(model_type)} is not supported; {hint}accepted: {', '.join(_FAMILIES)}"
        raise InputError(Mistake(file, field_path((*prefix, "model_type")), message))
    config = validate(family, data, file, prefix)
    return validate(Model, {"name": name, **config.shapes()}, file, prefix)
