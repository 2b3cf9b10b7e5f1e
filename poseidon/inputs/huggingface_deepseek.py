"""The DeepSeek families of Hugging Face configurations: latent attention, and experts after some dense layers."""

from __future__ import annotations

from typing import Any

from poseidon.inputs.fields import Count, CountOrZero, LayerCount, Switch
from poseidon.inputs.huggingface_family import Family


class DeepSeekV2(Family):
    """MoE layers are those from `first_k_dense_replace` on where i is a multiple of `moe_layer_freq`."""

    vocab_size: Count
    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: LayerCount
    num_attention_heads: Count
    q_lora_rank: Count | None
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    n_routed_experts: Count | None
    n_shared_experts: CountOrZero | None = None
    num_experts_per_tok: Count | None = None
    moe_intermediate_size: Count
    first_k_dense_replace: CountOrZero = 0
    moe_layer_freq: Count = 1
    attention_bias: Switch = False
    tie_word_embeddings: Switch = False

    def shapes(self) -> dict[str, Any]:
        """See `Family`."""
        mla = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        return {
            "num_layers": self.num_hidden_layers,
            "hidden_size": self.hidden_size,
            "ffn_hidden_size": self.intermediate_size,
            "num_attention_heads": self.num_attention_heads,
            "head_dim": self.v_head_dim,
            "vocab_size": self.vocab_size,
            "tied_embeddings": self.tie_word_embeddings,
            "qkv_bias": self.attention_bias,
            "attention_output_bias": self.attention_bias,
            "mla": {key: getattr(self, key) for key in mla},
            "moe": self._moe_fields(),
        }

    def _moe_fields(self) -> dict[str, Any] | None:
        frequency = self.moe_layer_freq
        first = -(-self.first_k_dense_replace // frequency) * frequency
        if self.n_routed_experts is None or first >= self.num_hidden_layers:
            return None
        return {
            "num_experts": self.n_routed_experts,
            "experts_per_token": self.num_experts_per_tok,
            "expert_ffn_hidden_size": self.moe_intermediate_size,
            "shared_ffn_hidden_size": (self.n_shared_experts or 0) * self.moe_intermediate_size,
            "first_dense_layers": first,
            "moe_layer_frequency": frequency,
        }


class DeepSeekV3(DeepSeekV2):
    """Its router has one trained bias per expert, `e_score_correction_bias`, which counts as a parameter here."""

    first_k_dense_replace: CountOrZero = 3

    def _moe_fields(self) -> dict[str, Any] | None:
        moe = super()._moe_fields()
        return moe and {**moe, "router_bias": True}
