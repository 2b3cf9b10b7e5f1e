"""Tiny models of every kind that is measured."""

from __future__ import annotations

from typing import Any

import pytest

from poseidon.inputs.model import Model

DENSE: dict[str, Any] = {
    "name": "tiny",
    "num_layers": 4,
    "hidden_size": 32,
    "ffn_hidden_size": 48,
    "num_attention_heads": 4,
    "num_kv_heads": 2,
    "vocab_size": 96,
}
GPT = DENSE | {
    "name": "tiny-gpt",
    "num_kv_heads": 4,
    "gated_mlp": False,
    "norm": "layernorm",
    "qkv_bias": True,
    "attention_output_bias": True,
    "mlp_bias": True,
    "tied_embeddings": True,
    "embedding_size": 16,
    "final_norm": False,
    "max_position_embeddings": 64,
}
MOE = DENSE | {
    "name": "tiny-moe",
    "qk_norm": True,
    "moe": {
        "num_experts": 4,
        "experts_per_token": 2,
        "expert_ffn_hidden_size": 16,
        "shared_ffn_hidden_size": 16,
        "first_dense_layers": 1,
        "router_bias": True,
    },
}
MLA = DENSE | {
    "name": "tiny-mla",
    "num_kv_heads": 4,
    "mla": {
        "q_lora_rank": 16,
        "kv_lora_rank": 8,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 8,
    },
}
MODELS = {"dense": DENSE, "gpt": GPT, "moe": MOE, "mla": MLA}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    """Each of them."""
    return Model.model_validate(MODELS[request.param])


@pytest.fixture
def dense() -> Model:
    """Grouped-query attention and a gated MLP."""
    return Model.model_validate(DENSE)


@pytest.fixture
def models() -> tuple[Model, ...]:
    """All of them."""
    return tuple(map(Model.model_validate, MODELS.values()))
