"""A transformer language model: the shapes of its layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from poseidon.inputs import parameters
from poseidon.inputs.fields import Count, CountOrZero, LayerCount, Name, Switch
from poseidon.inputs.file_model import FileModel, Problem
from poseidon.inputs.model_checks import derived_model_fields, model_problems

LayerType = Literal["dense", "moe"]


class MixtureOfExperts(FileModel):
    """The experts of a model's MoE layers.

    Layer i (from 0) is an MoE layer when i - `first_dense_layers` is a multiple of `moe_layer_frequency`, not negative,
    and i is not in `dense_layers`.
    """

    num_experts: Count
    """Routed experts of a layer."""
    experts_per_token: Count
    """Routed experts that each token visits."""
    expert_ffn_hidden_size: Count
    """Width of one expert's MLP."""
    shared_ffn_hidden_size: CountOrZero = 0
    """Width of the shared experts' MLPs together; 0: none."""
    first_dense_layers: CountOrZero = 0
    """Leading layers with a plain MLP (DeepSeek's first_k_dense_replace)."""
    moe_layer_frequency: Count = 1
    """Every how many layers an MoE layer comes, after the leading dense ones."""
    dense_layers: Annotated[tuple[CountOrZero, ...], Field(max_length=1_000)] = ()
    """Further layers with a plain MLP, by 0-based index (Qwen's mlp_only_layers)."""
    router_bias: Switch = False
    """Whether the router has one bias per expert (DeepSeek-V3's e_score_correction_bias)."""

    def is_moe_layer(self, layer: int) -> bool:
        """Whether the layer with this 0-based index has experts."""
        offset = layer - self.first_dense_layers
        return offset >= 0 and offset % self.moe_layer_frequency == 0 and layer not in self.dense_layers


class MultiHeadLatentAttention(FileModel):
    """DeepSeek's attention with compressed queries, keys and values (DeepSeek-V2, arXiv 2405.04434, section 2.1)."""

    q_lora_rank: Count | None = None
    """Rank of the compressed query; absent: queries are projected directly."""
    kv_lora_rank: Count
    """Rank of the compressed keys and values."""
    qk_nope_head_dim: Count
    """Query and key size per head without position."""
    qk_rope_head_dim: Count
    """Query size per head, and key size shared by all heads, with rotary position."""
    v_head_dim: Count
    """Value size per head."""


class Model(FileModel):
    """A decoder-only transformer; parameter counts are exact (see `parameters`)."""

    name: Name
    """What the model is called in results."""
    num_layers: LayerCount
    """Transformer layers."""
    hidden_size: Count
    """Width of the residual stream."""
    ffn_hidden_size: Count
    """Width of a dense layer's MLP."""
    num_attention_heads: Count
    """Query heads."""
    num_kv_heads: Count
    """Key and value heads (default: `num_attention_heads`)."""
    head_dim: Count
    """Size of a head (default: `hidden_size` / `num_attention_heads`)."""
    vocab_size: Count
    """Rows of the token embedding."""
    gated_mlp: Switch = True
    """Three matrices (gate, up, down) instead of two."""
    tied_embeddings: Switch = False
    """Whether the output projection is the token embedding."""
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    """"rmsnorm" has a scale, "layernorm" a scale and a bias."""
    qkv_bias: Switch = False
    """Biases of the query, key and value projections."""
    attention_output_bias: Switch = False
    """Bias of the attention's output projection."""
    mlp_bias: Switch = False
    """Biases of the MLP's matrices, of experts too."""
    qk_norm: Switch = False
    """Whether queries and keys are normalised per head (Qwen3)."""
    final_norm: Switch = True
    """Whether a normalisation follows the last layer."""
    embedding_size: Count
    """Width of the token embedding (default: `hidden_size`); another width needs projections (OPT-350M)."""
    max_position_embeddings: Count | None = None
    """Rows of the learned position embedding; absent: no learned positions (rotary)."""
    sliding_window: Count | None = None
    """Tokens that each token attends to (Mistral 7B); absent: all before it."""
    moe: MixtureOfExperts | None = None
    """Mixture of experts; absent: every layer is dense."""
    mla: MultiHeadLatentAttention | None = None
    """Multi-head latent attention; absent: grouped-query attention."""

    derived_fields = frozenset({"num_kv_heads", "head_dim", "embedding_size"})

    @classmethod
    def derived_defaults(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Multi-head attention, heads that fill the hidden size, an embedding as wide as the model."""
        return derived_model_fields(data)

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """Heads share out evenly and layer indices exist."""
        return model_problems(data)

    @property
    def layer_types(self) -> tuple[LayerType, ...]:
        """The type of each layer, in order; shape [num_layers]."""
        moe = self.moe
        return tuple("moe" if moe and moe.is_moe_layer(layer) else "dense" for layer in range(self.num_layers))

    @property
    def distinct_layer_types(self) -> tuple[LayerType, ...]:
        """The types that occur, in order of first occurrence."""
        return tuple(dict.fromkeys(self.layer_types))

    def layer_parameters(self, layer_type: LayerType) -> int:
        """Parameters of one layer of the given type."""
        return parameters.layer_parameters(self, layer_type)

    def active_layer_parameters(self, layer_type: LayerType) -> int:
        """Parameters of one layer that a token meets: routed experts count only as many times as it visits."""
        return parameters.active_layer_parameters(self, layer_type)

    @property
    def embedding_parameters(self) -> int:
        """Parameters before the first layer: token and learned position embeddings, projection to the hidden size."""
        return parameters.embedding_parameters(self)

    @property
    def head_parameters(self) -> int:
        """Parameters after the last layer: final norm and the output projection, which counts 0 when it is tied.

        A pipeline of several stages holds a copy of a tied matrix on its last one (`output_projection_parameters`).
        """
        return parameters.head_parameters(self)

    @property
    def output_projection_parameters(self) -> int:
        """Parameters of the matrix from the embedding size to the vocabulary, tied or not."""
        return self.vocab_size * self.embedding_size

    @property
    def num_parameters(self) -> int:
        """All parameters, each counted once."""
        layers = sum(self.layer_parameters(layer_type) for layer_type in self.layer_types)
        return self.embedding_parameters + layers + self.head_parameters

    @property
    def num_active_parameters(self) -> int:
        """All parameters that a token meets, each counted once."""
        layers = sum(self.active_layer_parameters(layer_type) for layer_type in self.layer_types)
        return self.embedding_parameters + layers + self.head_parameters
