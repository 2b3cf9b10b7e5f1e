"""The model that a command line describes, in the fields of `poseidon.inputs.Model`."""

from __future__ import annotations

from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.launch.arguments import Arguments
from poseidon.launch.layer_pattern import FLAG as PATTERN_FLAG
from poseidon.launch.layer_pattern import moe_layers

MODEL_FLAGS = (
    "--num-layers",
    "--hidden-size",
    "--ffn-hidden-size",
    "--num-attention-heads",
    "--kv-channels",
    "--group-query-attention",
    "--num-query-groups",
    "--swiglu",
    "--normalization",
    "--disable-bias-linear",
    "--add-qkv-bias",
    "--qk-layernorm",
    "--position-embedding-type",
    "--max-position-embeddings",
    "--untie-embeddings-and-output-weights",
    "--multi-latent-attention",
    "--num-experts",
    "--moe-router-topk",
    "--moe-ffn-hidden-size",
    PATTERN_FLAG,
    "--moe-shared-expert-intermediate-size",
)
"""The flags that decide on the model's cost: none may be misspelt."""
MIXED_EXPERT_DEFAULT = 2
"""Default of --moe-router-topk."""


def needed(arguments: Arguments, flag: str, *others: str) -> int:
    """The number that a flag (or another name of it) gives; InputError where it is not there."""
    for name in (flag, *others):
        value = arguments.count(name)
        if value is not None:
            return value
    raise InputError(Mistake(flag, "", "is missing: the plan is made for the model that the flags describe"))


def num_layers_of(arguments: Arguments) -> int:
    """Transformer layers; --encoder-num-layers is the older name."""
    return needed(arguments, "--num-layers", "--encoder-num-layers")


def model_fields(arguments: Arguments, vocab_size: int) -> dict[str, Any]:
    """All fields of the model. InputError where a flag is missing or contradicts another."""
    num_layers, hidden = num_layers_of(arguments), needed(arguments, "--hidden-size")
    heads = needed(arguments, "--num-attention-heads")
    ffn = _ffn_hidden_size(arguments, hidden)
    has_bias = not arguments.has("--disable-bias-linear")
    latent = _latent_attention(arguments)
    fields: dict[str, Any] = {
        "name": f"{num_layers} layers of {hidden}",
        "num_layers": num_layers,
        "hidden_size": hidden,
        "ffn_hidden_size": ffn,
        "num_attention_heads": heads,
        "num_kv_heads": _kv_heads(arguments, heads),
        "head_dim": arguments.count("--kv-channels"),
        "vocab_size": vocab_size,
        "gated_mlp": any(map(arguments.has, ("--swiglu", "--quick-geglu", "--geglu"))),
        "tied_embeddings": not arguments.has("--untie-embeddings-and-output-weights"),
        "norm": "rmsnorm" if arguments.text("--normalization") == "RMSNorm" else "layernorm",
        "qkv_bias": has_bias or arguments.has("--add-qkv-bias"),
        "attention_output_bias": has_bias or arguments.has("--add-dense-bias"),
        "mlp_bias": has_bias,
        # With latent attention these are the norms of the compressions, which every such model has.
        "qk_norm": arguments.has("--qk-layernorm") and latent is None,
        "max_position_embeddings": _learned_positions(arguments),
        "moe": _experts(arguments, num_layers, ffn),
        "mla": latent,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _ffn_hidden_size(arguments: Arguments, hidden: int) -> int:
    """4 h; with SwiGLU two thirds of that, a multiple of 64 (Megatron-LM's arguments.py)."""
    given = arguments.count("--ffn-hidden-size")
    if given is not None:
        return given
    return int(4 * hidden * 2 / 3 / 64) * 64 if arguments.has("--swiglu") else 4 * hidden


def _kv_heads(arguments: Arguments, heads: int) -> int:
    """--num-query-groups counts only beside --group-query-attention, and is 1 where it is not given."""
    if not arguments.has("--group-query-attention"):
        return heads
    return arguments.count("--num-query-groups") or 1


def _learned_positions(arguments: Arguments) -> int | None:
    """Rows of the learned position embedding, which is Megatron-LM's default; None: there is none."""
    kind = arguments.text("--position-embedding-type") or "learned_absolute"
    other = ("--use-rotary-position-embeddings", "--no-position-embedding")
    if kind != "learned_absolute" or any(map(arguments.has, other)):
        return None
    return needed(arguments, "--max-position-embeddings")


def _latent_attention(arguments: Arguments) -> dict[str, int] | None:
    """DeepSeek's attention: Megatron-LM's names and defaults, and MindSpeed-LLM's older names."""
    if not any(map(arguments.has, ("--multi-latent-attention", "--multi-head-latent-attention"))):
        return None
    sizes = {
        "q_lora_rank": arguments.count("--q-lora-rank"),
        "kv_lora_rank": arguments.count("--kv-lora-rank") or 32,
        "qk_nope_head_dim": arguments.count("--qk-nope-head-dim") or arguments.count("--qk-head-dim") or 128,
        "qk_rope_head_dim": arguments.count("--qk-rope-head-dim") or arguments.count("--qk-pos-emb-head-dim") or 64,
        "v_head_dim": arguments.count("--v-head-dim") or 128,
    }
    return {key: value for key, value in sizes.items() if value is not None}


def _experts(arguments: Arguments, num_layers: int, ffn: int) -> dict[str, Any] | None:
    num_experts = arguments.count("--num-experts")
    if not num_experts:
        return None
    width = arguments.count("--moe-ffn-hidden-size") or arguments.count("--moe-intermediate-size") or ffn
    shared = arguments.count("--moe-shared-expert-intermediate-size")
    if shared is None:
        shared = (arguments.count("--n-shared-experts") or 0) * width
    top_k = arguments.count("--moe-router-topk")
    layers = _expert_layers(arguments, num_layers)
    if not any(layers):
        message = "leaves no layer with experts, and --num-experts asks for some"
        raise InputError(Mistake(PATTERN_FLAG, "", message))
    first = layers.index(True)
    return {
        "num_experts": num_experts,
        "experts_per_token": MIXED_EXPERT_DEFAULT if top_k is None else top_k,
        "expert_ffn_hidden_size": width,
        "shared_ffn_hidden_size": shared,
        "first_dense_layers": first,
        "dense_layers": [layer for layer in range(first, num_layers) if not layers[layer]],
        "router_bias": arguments.has("--moe-router-enable-expert-bias"),
    }


def _expert_layers(arguments: Arguments, num_layers: int) -> tuple[bool, ...]:
    """Which layers have experts; MindSpeed-LLM's --first-k-dense-replace takes them from the first ones."""
    layers = moe_layers(arguments.text(PATTERN_FLAG) or "1", num_layers)
    dense = arguments.count("--first-k-dense-replace") or 0
    return tuple(has_experts and layer >= dense for layer, has_experts in enumerate(layers))
