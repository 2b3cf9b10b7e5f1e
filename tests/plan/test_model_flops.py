from __future__ import annotations

from pathlib import Path

import pytest

from poseidon.inputs.model import Model
from poseidon.inputs.model_file import load_model
from poseidon.plan.model_flops import attention_flops_per_token, flops_per_token

MODELS = Path(__file__).parents[2] / "configs" / "models"


def test_gpt_3_as_published() -> None:
    """PaLM (arXiv 2204.02311), table 3 and appendix B: GPT-3 175B has L 96, H 96, Q 128 at T 2048."""
    model = load_model(MODELS / "gpt-3-175b.yaml")
    assert attention_flops_per_token(model, 2048) == 12 * 96 * 96 * 128 * 2048
    assert flops_per_token(model, 2048) == pytest.approx(6 * 175e9 + 12 * 96 * 96 * 128 * 2048, rel=0.01)


def test_the_embedding_does_not_count_and_a_tied_output_does() -> None:
    fields = {
        "name": "m",
        "num_layers": 1,
        "hidden_size": 8,
        "ffn_hidden_size": 8,
        "num_attention_heads": 1,
        "vocab_size": 1000,
    }
    tied = Model.model_validate({**fields, "tied_embeddings": True})
    untied = Model.model_validate({**fields, "tied_embeddings": False})
    assert flops_per_token(tied, 4) == flops_per_token(untied, 4)
    assert flops_per_token(tied, 4) == 6 * (tied.layer_parameters("dense") + 1000 * 8) + 12 * 8 * 4


def test_only_active_experts_count() -> None:
    mixtral = load_model(MODELS / "mixtral-8x7b.yaml")
    assert flops_per_token(mixtral, 1) == pytest.approx(6 * 12.8e9, rel=0.02)


def test_a_sliding_window_is_what_attention_sees() -> None:
    model = load_model(MODELS / "llama-2-7b.yaml")
    windowed = model.model_copy(update={"sliding_window": 1024})
    assert attention_flops_per_token(windowed, 4096) == attention_flops_per_token(model, 1024)
    assert attention_flops_per_token(windowed, 512) == attention_flops_per_token(model, 512)
