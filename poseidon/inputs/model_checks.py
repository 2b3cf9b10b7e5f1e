"""Derived fields and cross-field checks of a model; they read the raw mapping (see `FileModel`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon.inputs.file_model import Problem, is_count


def derived_model_fields(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fields that follow from others where a file leaves them out."""
    hidden, heads = data.get("hidden_size"), data.get("num_attention_heads")
    derived: dict[str, Any] = {}
    if heads is not None:
        derived["num_kv_heads"] = heads
    if hidden is not None:
        derived["embedding_size"] = hidden
    mla = data.get("mla")
    if isinstance(mla, Mapping):
        derived["head_dim"] = mla.get("v_head_dim")
    elif is_count(hidden) and is_count(heads) and hidden % heads == 0:
        derived["head_dim"] = hidden // heads
    return derived


def model_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """All cross-field problems of a model's mapping (derived fields filled in)."""
    hidden, heads = data.get("hidden_size"), data.get("num_attention_heads")
    kv_heads = data.get("num_kv_heads")
    if is_count(heads) and is_count(kv_heads) and heads % kv_heads:
        yield Problem(("num_kv_heads",), f"{kv_heads} does not divide num_attention_heads, {heads}")
    if is_count(hidden) and is_count(heads) and hidden % heads and "head_dim" not in data:
        message = f"is missing, and hidden_size {hidden} is not a multiple of num_attention_heads {heads}"
        yield Problem(("head_dim",), message)
    moe, num_layers = data.get("moe"), data.get("num_layers")
    if isinstance(moe, Mapping):
        yield from _expert_problems(moe, num_layers)


def _expert_problems(moe: Mapping[str, Any], num_layers: object) -> Iterator[Problem]:
    experts, visited = moe.get("num_experts"), moe.get("experts_per_token")
    if is_count(experts) and is_count(visited) and visited > experts:
        yield Problem(("moe", "experts_per_token"), f"{visited} is more than num_experts, {experts}")
    if not is_count(num_layers):
        return
    first_dense = moe.get("first_dense_layers")
    if is_count(first_dense) and first_dense > num_layers:
        yield Problem(("moe", "first_dense_layers"), f"{first_dense} is more than num_layers, {num_layers}")
    dense_layers = moe.get("dense_layers")
    for index, layer in enumerate(dense_layers if isinstance(dense_layers, list | tuple) else ()):
        if is_count(layer) and layer >= num_layers:
            message = f"there is no layer {layer}: the model has layers 0 to {num_layers - 1}"
            yield Problem(("moe", "dense_layers", index), message)
