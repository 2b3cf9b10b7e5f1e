from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.huggingface import model_from_huggingface
from poseidon.inputs.model import Model
from poseidon.inputs.model_file import load_model

LLAMA_KEYS = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


def llama_like(model_type: str, *sizes: int, kv: int, **more: Any) -> dict[str, Any]:
    """`sizes`: vocabulary, hidden, intermediate, layers, heads."""
    return {"model_type": model_type, **dict(zip(LLAMA_KEYS, sizes, strict=True)), "num_key_value_heads": kv, **more}


def deepseek(model_type: str, *sizes: int, **more: Any) -> dict[str, Any]:
    mla = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    return llama_like(model_type, *sizes, kv=128, **mla, **more)


def opt(hidden: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "ffn_dim": 4 * hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {"model_type": "opt", "vocab_size": 50272, "max_position_embeddings": 2048, **sizes, **more}


def qwen3_experts(num: int, width: int) -> dict[str, Any]:
    return {"head_dim": 128, "num_experts": num, "num_experts_per_tok": 8, "moe_intermediate_size": width}


V3_EXPERTS = {"n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048}
V2_EXPERTS = {"n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1536}
GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
LLAMA_2_7B = llama_like("llama", 32000, 4096, 11008, 32, 32, kv=32)

# Published: the numbers of elements in the checkpoints on Hugging Face (for DeepSeek-V3 without its
# multi-token-prediction layer, and with the router's bias).
PUBLISHED = {
    "Llama-2-7B": (LLAMA_2_7B, 6_738_415_616),
    "Llama-2-13B": (llama_like("llama", 32000, 5120, 13824, 40, 40, kv=40), 13_015_864_320),
    "Llama-2-70B": (llama_like("llama", 32000, 8192, 28672, 80, 64, kv=8), 68_976_648_192),
    "Llama-3-8B": (llama_like("llama", 128256, 4096, 14336, 32, 32, kv=8), 8_030_261_248),
    "Llama-3-70B": (llama_like("llama", 128256, 8192, 28672, 80, 64, kv=8), 70_553_706_496),
    "Llama-3.1-405B": (llama_like("llama", 128256, 16384, 53248, 126, 128, kv=8), 405_853_388_800),
    "Mistral-7B": (llama_like("mistral", 32000, 4096, 14336, 32, 32, kv=8), 7_241_732_096),
    "Mixtral-8x7B": (
        llama_like("mixtral", 32000, 4096, 14336, 32, 32, kv=8, num_local_experts=8, num_experts_per_tok=2),
        46_702_792_704,
    ),
    "Qwen2-7B": (llama_like("qwen2", 152064, 3584, 18944, 28, 28, kv=4), 7_615_616_512),
    "Qwen3-8B": (llama_like("qwen3", 151936, 4096, 12288, 36, 32, kv=8), 8_190_735_360),
    "Qwen3-30B-A3B": (
        llama_like("qwen3_moe", 151936, 2048, 6144, 48, 32, kv=4, **qwen3_experts(128, 768)),
        30_532_122_624,
    ),
    "Qwen3-235B-A22B": (
        llama_like("qwen3_moe", 151936, 4096, 12288, 94, 64, kv=4, **qwen3_experts(128, 1536)),
        235_093_634_560,
    ),
    "DeepSeek-V3": (deepseek("deepseek_v3", 129280, 7168, 18432, 61, 128, **V3_EXPERTS), 671_026_419_200),
    "DeepSeek-V2": (
        deepseek("deepseek_v2", 102400, 5120, 12288, 60, 128, **V2_EXPERTS, first_k_dense_replace=1),
        235_741_434_880,
    ),
    "GPT-2": (GPT2, 124_439_808),
    "OPT-125M": (opt(768, 12, 12), 125_239_296),
    "OPT-350M": (opt(1024, 24, 16, word_embed_proj_dim=512, do_layer_norm_before=False), 331_196_416),
    "OPT-1.3B": (opt(2048, 24, 32, word_embed_proj_dim=2048), 1_315_758_080),
}


def model_of(data: dict[str, Any]) -> Model:
    return model_from_huggingface(data, "config.json", "m")


def lines(data: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        model_of(data)
    return [f"{mistake.field}: {mistake.message}" for mistake in caught.value.mistakes]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_number_of_parameters_is_the_published_one(name: str) -> None:
    config, num_parameters = PUBLISHED[name]
    assert model_of(config).num_parameters == num_parameters


@pytest.mark.parametrize(
    ("name", "billions"),
    [("Mixtral-8x7B", 12.9), ("Qwen3-30B-A3B", 3.3), ("Qwen3-235B-A22B", 22.2), ("DeepSeek-V3", 37.6)],
)
def test_the_number_of_active_parameters_is_the_published_one(name: str, billions: float) -> None:
    num_active = model_of(PUBLISHED[name][0]).num_active_parameters
    assert num_active / 1e9 == pytest.approx(billions, abs=0.06)


def test_keys_that_do_not_change_shapes_are_ignored() -> None:
    more = {"rope_theta": 1e4, "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096, "foo": None}
    assert model_of({**LLAMA_2_7B, **more}) == model_of(LLAMA_2_7B)


@pytest.mark.parametrize(("model_type", "heads"), [("llama", 32), ("mistral", 8), ("qwen2", 32), ("qwen3", 32)])
def test_absent_kv_heads_have_the_familys_default(model_type: str, heads: int) -> None:
    data = {**LLAMA_2_7B, "model_type": model_type}
    del data["num_key_value_heads"]
    assert model_of(data).num_kv_heads == heads
    assert model_of({**data, "num_key_value_heads": None}).num_kv_heads == 32


def test_embeddings_are_tied_by_default_only_in_gpt2_and_opt() -> None:
    assert model_of(GPT2).tied_embeddings
    assert model_of(opt(768, 12, 12)).tied_embeddings
    untied = [name for name, (config, _) in PUBLISHED.items() if not model_of(config).tied_embeddings]
    assert len(untied) == len(PUBLISHED) - 4
    assert model_of({**LLAMA_2_7B, "tie_word_embeddings": True}).tied_embeddings
    assert not model_of({**GPT2, "tie_word_embeddings": False}).tied_embeddings


def test_biases_are_where_the_family_has_them() -> None:
    def biases(data: dict[str, Any]) -> tuple[bool, bool, bool]:
        model = model_of(data)
        return model.qkv_bias, model.attention_output_bias, model.mlp_bias

    assert biases(LLAMA_2_7B) == (False, False, False)
    assert biases({**LLAMA_2_7B, "attention_bias": True, "mlp_bias": True}) == (True, True, True)
    assert biases(PUBLISHED["Qwen2-7B"][0]) == (True, False, False)
    assert biases({**PUBLISHED["Qwen3-8B"][0], "attention_bias": True}) == (True, True, False)
    assert biases(GPT2) == (True, True, True)


def test_heads_have_the_size_that_the_family_gives_them() -> None:
    assert model_of({**LLAMA_2_7B, "head_dim": 64}).head_dim == 64
    assert model_of({**LLAMA_2_7B, "model_type": "qwen3", "hidden_size": 2560}).head_dim == 128
    assert model_of({**LLAMA_2_7B, "model_type": "qwen2", "hidden_size": 2560}).head_dim == 80


def test_qwen3_experts_follow_the_sparse_step_and_the_dense_layers() -> None:
    data = llama_like("qwen3_moe", 1000, 64, 128, 8, 4, kv=2, **qwen3_experts(16, 32))
    step = model_of({**data, "decoder_sparse_step": 2, "mlp_only_layers": [3]})
    assert step.layer_types == ("dense", "moe", "dense", "dense", "dense", "moe", "dense", "moe")
    assert model_of({**data, "decoder_sparse_step": 9}).moe is None
    renamed = {("num_local_experts" if key == "num_experts" else key): value for key, value in data.items()}
    assert model_of(renamed) == model_of(data)


def test_deepseek_experts_follow_the_first_dense_layers_and_the_frequency() -> None:
    data = deepseek("deepseek_v2", 1000, 64, 128, 8, 4, **V2_EXPERTS)
    assert model_of(data).layer_types == ("moe",) * 8
    assert model_of({**data, "first_k_dense_replace": 3}).layer_types == ("dense",) * 3 + ("moe",) * 5
    every_second = model_of({**data, "first_k_dense_replace": 3, "moe_layer_freq": 2})
    assert every_second.layer_types == ("dense",) * 4 + ("moe", "dense", "moe", "dense")
    assert model_of({**data, "n_routed_experts": None}).moe is None
    assert model_of({**data, "q_lora_rank": None}).num_parameters != model_of(data).num_parameters


def test_gpt2_may_have_an_inner_width_of_its_own() -> None:
    assert model_of({**GPT2, "n_inner": None}).ffn_hidden_size == 3072
    assert model_of({**GPT2, "n_inner": 1000}).ffn_hidden_size == 1000


def test_an_unknown_family_is_refused_with_those_that_are_known() -> None:
    (line,) = lines({**LLAMA_2_7B, "model_type": "lama"})
    assert line.startswith("model_type: 'lama' is not supported; did you mean 'llama'? accepted: llama, mistral, ")
    (line,) = lines({**LLAMA_2_7B, "model_type": ["bert"]})
    assert line.startswith("model_type: ['bert'] is not supported; accepted: ")


def test_mistakes_are_reported_with_the_keys_of_the_family() -> None:
    data = {**LLAMA_2_7B, "intermediate_size": "big", "num_hidden_layers": 0, "tie_word_embeddings": 1}
    del data["vocab_size"]
    assert lines(data) == [
        "vocab_size: is missing",
        "intermediate_size: expected a whole number, got the text 'big'",
        "num_hidden_layers: 0 is too small: at least 1 is accepted",
        "tie_word_embeddings: expected true or false, got 1",
    ]


def test_a_file_with_a_model_type_is_read_as_a_hugging_face_configuration(
    write: Callable[[str, Any], Path], model_data: dict[str, Any]
) -> None:
    config = load_model(write("Llama-2-7b-hf/config.json", json.dumps(LLAMA_2_7B)))
    assert (config.name, config.num_parameters) == ("Llama-2-7b-hf", 6_738_415_616)
    own = load_model(write("own.json", json.dumps(model_data)))
    assert own == load_model(write("own.yaml", model_data))
    assert own.name == "own"
