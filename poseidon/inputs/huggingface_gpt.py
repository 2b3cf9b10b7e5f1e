"""The families of Hugging Face configurations with learned positions: gpt2 and opt."""

from __future__ import annotations

from typing import Any

from poseidon.inputs.fields import Count, LayerCount, Switch
from poseidon.inputs.huggingface_family import Family

_WITH_BIASES_AND_LAYER_NORMS = {
    "gated_mlp": False,
    "norm": "layernorm",
    "qkv_bias": True,
    "attention_output_bias": True,
    "mlp_bias": True,
}


class Gpt2(Family):
    """Learned positions, biases and layer norms everywhere; tied embeddings unless it says otherwise."""

    vocab_size: Count
    n_positions: Count
    n_embd: Count
    n_layer: LayerCount
    n_head: Count
    n_inner: Count | None = None
    tie_word_embeddings: Switch = True

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        return {
            "num_layers": self.n_layer,
            "hidden_size": self.n_embd,
            "ffn_hidden_size": self.n_inner or 4 * self.n_embd,
            "num_attention_heads": self.n_head,
            "vocab_size": self.vocab_size,
            "max_position_embeddings": self.n_positions,
            "tied_embeddings": self.tie_word_embeddings,
            **_WITH_BIASES_AND_LAYER_NORMS,
        }


class Opt(Family):
    """Like GPT-2; its position table has 2 unused rows, and a narrow embedding is projected to the hidden size."""

    vocab_size: Count
    hidden_size: Count
    ffn_dim: Count
    num_hidden_layers: LayerCount
    num_attention_heads: Count
    max_position_embeddings: Count
    word_embed_proj_dim: Count | None = None
    do_layer_norm_before: Switch = True
    enable_bias: Switch = True
    tie_word_embeddings: Switch = True

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        biases = ("qkv_bias", "attention_output_bias", "mlp_bias")
        return {
            "num_layers": self.num_hidden_layers,
            "hidden_size": self.hidden_size,
            "ffn_hidden_size": self.ffn_dim,
            "num_attention_heads": self.num_attention_heads,
            "vocab_size": self.vocab_size,
            "max_position_embeddings": self.max_position_embeddings + 2,
            "embedding_size": self.word_embed_proj_dim,
            "final_norm": self.do_layer_norm_before,
            "tied_embeddings": self.tie_word_embeddings,
            **_WITH_BIASES_AND_LAYER_NORMS,
            **dict.fromkeys(biases, self.enable_bias),
        }
