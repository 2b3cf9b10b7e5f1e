"""The Llama-like families of Hugging Face configurations: llama, mistral, mixtral, qwen2, qwen3, qwen3_moe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poseidon.inputs.fields import Count, CountOrZero, LayerCount, Switch
from poseidon.inputs.huggingface_family import Family


class Llama(Family):
    """Grouped-query attention, gated MLP, RMS norms; biases only when switched on."""

    vocab_size: Count
    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: LayerCount
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    tie_word_embeddings: Switch = False
    attention_bias: Switch = False
    mlp_bias: Switch = False

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        return {
            "num_layers": self.num_hidden_layers,
            "hidden_size": self.hidden_size,
            "ffn_hidden_size": self.intermediate_size,
            "num_attention_heads": self.num_attention_heads,
            "num_kv_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocab_size,
            "tied_embeddings": self.tie_word_embeddings,
            "qkv_bias": self.attention_bias,
            "attention_output_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
        }


class Mistral(Llama):
    """Never has biases; `num_key_value_heads` defaults to 8."""

    num_key_value_heads: Count | None = 8

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        without_biases = {"qkv_bias": False, "attention_output_bias": False, "mlp_bias": False}
        return {**super().shapes(), **without_biases}


class Mixtral(Mistral):
    """Every layer is an MoE layer whose experts have the width `intermediate_size`."""

    num_local_experts: Count
    num_experts_per_tok: Count

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        moe = {
            "num_experts": self.num_local_experts,
            "experts_per_token": self.num_experts_per_tok,
            "expert_ffn_hidden_size": self.intermediate_size,
        }
        return {**super().shapes(), "moe": moe}


class Qwen2(Mistral):
    """Biases on queries, keys and values, always; `num_key_value_heads` defaults to 32."""

    num_key_value_heads: Count | None = 32

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        return {**super().shapes(), "qkv_bias": True}


class Qwen3(Llama):
    """Norms on queries and keys; heads of size 128 unless given."""

    num_key_value_heads: Count | None = 32
    head_dim: Count | None = 128

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        return {**super().shapes(), "qk_norm": True, "mlp_bias": False}


class Qwen3Moe(Qwen3):
    """MoE layers are those where (i + 1) is a multiple of `decoder_sparse_step`, except `mlp_only_layers`."""

    num_key_value_heads: Count | None = 4
    head_dim: Count | None = None
    num_experts: CountOrZero
    num_experts_per_tok: Count
    moe_intermediate_size: Count
    decoder_sparse_step: Count = 1
    mlp_only_layers: tuple[CountOrZero, ...] | None = None

    derived_fields = frozenset({"num_experts"})

    @classmethod
    def derived_defaults(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Newer versions of `transformers` write `num_local_experts`."""
        return {"num_experts": data.get("num_local_experts")}

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        fields = super().shapes()
        if not self.num_experts or self.decoder_sparse_step > self.num_hidden_layers:
            return fields
        moe = {
            "num_experts": self.num_experts,
            "experts_per_token": self.num_experts_per_tok,
            "expert_ffn_hidden_size": self.moe_intermediate_size,
            "first_dense_layers": self.decoder_sparse_step - 1,
            "moe_layer_frequency": self.decoder_sparse_step,
            "dense_layers": self.mlp_only_layers or (),
        }
        return {**fields, "moe": moe}
