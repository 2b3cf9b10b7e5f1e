"""What is read from a framework's flags: model, training, recomputation, vocabulary, framework."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.inputs.model_file import load_model
from poseidon.inputs.training import Training
from poseidon.launch.choices import Choices
from poseidon.launch.job import Job, read_job
from poseidon.launch.launcher import parsed_call
from poseidon.launch.layer_pattern import moe_layers

MODELS = Path(__file__).parents[2] / "configs" / "models"
GPT = (
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --max-position-embeddings 600 "
    "--micro-batch-size 2 --bf16 --vocab-size 50257 --global-batch-size 16"
)
LLAMA = f"{GPT} --position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear"


def job(text: str, script: str = "train.py", **choices: Any) -> Job:
    call = parsed_call(["torchrun", "--nproc-per-node", "8", script, *text.split()], {})
    assert call is not None
    return read_job(call, 8, Choices(**choices))


def model(text: str, **choices: Any) -> Model:
    return Model.model_validate(job(text, **choices).model)


def training(text: str, **choices: Any) -> dict[str, Any]:
    read = dict(job(text, **choices).training)
    Training.model_validate(read)
    return read


def test_gpt_is_megatrons_default() -> None:
    gpt = model(GPT)
    assert (gpt.ffn_hidden_size, gpt.num_kv_heads, gpt.head_dim) == (4096, 16, 64)
    assert (gpt.gated_mlp, gpt.norm, gpt.tied_embeddings) == (False, "layernorm", True)
    assert (gpt.qkv_bias, gpt.attention_output_bias, gpt.mlp_bias) == (True, True, True)
    assert (gpt.max_position_embeddings, gpt.vocab_size) == (600, 50304)


def test_llama_has_the_parameters_of_its_model_file() -> None:
    flags = (
        "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
        "--num-query-groups 8 --seq-length 8192 --swiglu --normalization RMSNorm --disable-bias-linear --bf16 "
        "--position-embedding-type rope --untie-embeddings-and-output-weights --padded-vocab-size 128256 "
        "--micro-batch-size 1 --global-batch-size 8 --max-position-embeddings 8192"
    )
    published = load_model(MODELS / "llama-3-8b.yaml")
    assert model(flags).num_parameters == published.num_parameters
    assert model(flags).model_dump(exclude={"name"}) == published.model_dump(exclude={"name"})


def test_swiglu_without_a_width_takes_two_thirds() -> None:
    assert model(LLAMA).ffn_hidden_size == 2688  # int(4 x 1024 x 2 / 3 / 64) x 64
    assert model(f"{LLAMA} --ffn-hidden-size 3000").ffn_hidden_size == 3000


def test_query_groups_count_only_beside_their_switch() -> None:
    assert model(f"{GPT} --num-query-groups 4").num_kv_heads == 16
    assert model(f"{GPT} --group-query-attention --num-query-groups 4").num_kv_heads == 4
    assert model(f"{GPT} --group-query-attention").num_kv_heads == 1


def test_experts_follow_a_pattern() -> None:
    flags = f"{LLAMA} --num-experts 16 --moe-ffn-hidden-size 512 --moe-router-topk 4"
    flags += " --moe-shared-expert-intermediate-size 64"
    moe = model(f"{flags} --moe-layer-freq [0]*2+([1]+[0])*3").moe
    assert moe is not None
    assert [moe.is_moe_layer(layer) for layer in range(8)] == [False, False, True, False, True, False, True, False]
    assert (moe.num_experts, moe.experts_per_token, moe.expert_ffn_hidden_size) == (16, 4, 512)
    assert moe.shared_ffn_hidden_size == 64
    plain = model(f"{LLAMA} --num-experts 4").moe
    assert plain is not None
    assert (plain.experts_per_token, plain.expert_ffn_hidden_size, plain.first_dense_layers) == (2, 2688, 0)


def test_mindspeed_llm_has_names_of_its_own_for_experts_and_latent_attention() -> None:
    flags = (
        f"{LLAMA} --multi-head-latent-attention --qk-rope-head-dim 32 --qk-nope-head-dim 64 --kv-lora-rank 256 "
        "--v-head-dim 64 --num-experts 8 --first-k-dense-replace 1 --n-shared-experts 2 --moe-intermediate-size 128 "
        "--spec mindspeed_llm.tasks.models.spec.deepseek_spec layer_spec --use-flash-attn --qk-layernorm"
    )
    read = model(flags)
    assert read.mla is not None
    assert read.mla.model_dump(exclude_none=True) == {
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
    }
    assert read.moe is not None
    assert (read.moe.first_dense_layers, read.moe.shared_ffn_hidden_size, read.qk_norm) == (1, 256, False)
    assert job(flags).framework.name == "mindspeed-llm"


def test_latent_attention_of_deepseek_v2_lite_has_its_published_size() -> None:
    flags = (
        "--num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --multi-latent-attention "
        "--kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --num-experts 64 "
        "--moe-layer-freq ([0]+[1]*26) --moe-ffn-hidden-size 1408 --moe-router-topk 6 --seq-length 4096 --bf16 "
        "--moe-shared-expert-intermediate-size 2816 --position-embedding-type rope --swiglu --normalization RMSNorm "
        "--disable-bias-linear --untie-embeddings-and-output-weights --padded-vocab-size 102400 --micro-batch-size 1 "
        "--global-batch-size 8"
    )
    assert round(model(flags).num_parameters / 1e9, 1) == 15.7  # arXiv 2405.04434, appendix B


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("1", [1, 1, 1, 1]),
        ("2", [1, 0, 1, 0]),
        ("[0,1,1,0]", [0, 1, 1, 0]),
        ("([0]*1+[1]*3)", [0, 1, 1, 1]),
        (" ( [0, 1] ) * 2 ", [0, 1, 0, 1]),
        ("[1]*2*2", [1, 1, 1, 1]),
    ],
)
def test_a_pattern_is_read_as_python_would(text: str, layers: list[int]) -> None:
    assert [int(layer) for layer in moe_layers(text, 4)] == layers


@pytest.mark.parametrize(
    "text",
    ["[0]*5", "0", "[2]*4", "__import__('os').system('touch PWNED')", "[1]*999999999", "(" * 500, "[1]+", "[1 1 1 1]",
     "",
     "[1]*9999*9999", "[0]*4)"],
)  # fmt: skip
def test_a_pattern_that_is_none_is_refused_and_never_run(text: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--moe-layer-freq"):
        moe_layers(text, 4)
    assert list(tmp_path.iterdir()) == []


def test_the_job_is_read_with_megatrons_defaults() -> None:
    read = training(GPT)
    assert (read["global_batch_size"], read["seq_length"], read["micro_batch_sizes"]) == (16, 512, [1, 2, 4])
    assert (read["precision"], read["gradient_precision"], read["distributed_optimizer"]) == ("bf16", "fp32", False)
    assert (read["flash_attention"], read["fused_rotary"], read["tp_overlap"]) == (True, True, False)
    half = training(f"{GPT} --use-distributed-optimizer --transformer-impl local".replace("--bf16", "--fp16"))
    assert (half["precision"], half["gradient_precision"], half["distributed_optimizer"]) == ("fp16", "fp16", True)
    assert not half["flash_attention"]


def test_a_batch_that_is_not_given_is_a_micro_batch_a_replica() -> None:
    without = GPT.replace(" --global-batch-size 16", "")
    assert training(f"{without} --tensor-model-parallel-size 2")["global_batch_size"] == 2 * 8 // 2
    with pytest.raises(InputError, match="TP 3 x PP 1 does not divide the 8 devices"):
        training(f"{without} --tensor-model-parallel-size 3")


def test_sequence_parallelism_says_something_only_beside_tp() -> None:
    assert training(GPT)["sequence_parallel"] is True
    assert training(f"{GPT} --tensor-model-parallel-size 2")["sequence_parallel"] is False
    assert training(f"{GPT} --tensor-model-parallel-size 2 --sequence-parallel")["sequence_parallel"] is True
    with pytest.raises(InputError, match="--sequence-parallel: is missing: Megatron-LM trains experts under TP"):
        training(f"{LLAMA} --num-experts 4 --tensor-model-parallel-size 2")


@pytest.mark.parametrize(
    ("flags", "mode", "stays"),
    [
        ("", "none", True),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "full", True),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 4", "full", False),
        ("--recompute-activations", "none", True),
        ("--recompute-activations --attention-backend unfused", "selective", True),
        ("--num-experts 4 --recompute-granularity selective --recompute-modules layernorm moe_act", "selective", True),
        ("--recompute-norm --recompute-activation-function --use-flash-attn", "selective", True),
    ],
)
def test_recomputation_is_what_a_plan_counts(flags: str, mode: str, stays: bool) -> None:
    read = job(f"{LLAMA} {flags}").recomputation
    assert (read.mode, read.stays) == (mode, stays)


@pytest.mark.parametrize(
    "flags",
    [
        "--recompute-granularity full --recompute-method block --recompute-num-layers 3",
        "--recompute-granularity full",
        "--recompute-granularity selective --recompute-modules mlp",
        "--recompute-granularity selective --recompute-modules layernorm moe_act",
        "--recompute-norm",
        "--recompute-norm --recompute-activation-function --recompute-norm-num-layers 2",
    ],
)
def test_other_recomputation_needs_a_choice(flags: str) -> None:
    with pytest.raises(InputError, match=r"--recompute none \(selective, full, or auto\)"):
        job(f"{LLAMA} {flags}")
    assert not job(f"{LLAMA} {flags}", recompute="auto").recomputation.stays


def test_the_vocabulary_is_padded_and_found_in_files(tmp_path: Path) -> None:
    bare = GPT.replace(" --vocab-size 50257", "")
    assert model(f"{GPT} --tensor-model-parallel-size 4").vocab_size == 50688  # a multiple of 512
    assert model(f"{GPT} --make-vocab-size-divisible-by 1").vocab_size == 50257
    assert model(f"{bare} --padded-vocab-size 50432").vocab_size == 50432
    assert model(bare, vocab_size=1000).vocab_size == 1024
    (tmp_path / "vocab.json").write_text(json.dumps({f"t{i}": i for i in range(130)}))
    assert model(f"{bare} --vocab-file {tmp_path}/vocab.json").vocab_size == 256
    tokenizer = {"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"content": "b"}, {"content": "<s>"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert model(f"{bare} --tokenizer-model {tmp_path} --make-vocab-size-divisible-by 1").vocab_size == 3
    with pytest.raises(InputError, match=r"--vocab-size: .* poseidon launch --vocab-size N"):
        model(f"{bare} --tokenizer-model {tmp_path}/nothing.model")


def test_what_costs_something_and_is_not_counted_is_refused_until_it_is_accepted() -> None:
    flags = f"{GPT} --fp8-format hybrid --window-size (128,0) --optimizer sgd"
    with pytest.raises(InputError) as refused:
        job(flags)
    assert [mistake.file for mistake in refused.value.mistakes] == ["--fp8-format", "--window-size"]
    read = job(flags, accept=("--fp8-format", "--window-size"))
    assert len(read.notes) == 3
    with pytest.raises(InputError, match="a plan can't be run with it"):
        job(f"{GPT} --use-tp-pp-dp-mapping", accept=("--use-tp-pp-dp-mapping",))
    with pytest.raises(InputError, match="--accept: '--lr': nothing is refused because of it"):
        job(GPT, accept=("--lr",))


@pytest.mark.parametrize(
    "flags",
    [
        "--context-parallel-size 2",
        "--expert-model-parallel-size=8",
        "--use-tp-pp-dp-mapping",
        "--noop-layers 1,2",
        "--mtp-num-layers 1",
        "--rampup-batch-size 8 8 1000",
        "--use-megatron-fsdp",
        "--schedules-method dualpipev",
        "--yaml-cfg x.yaml",
    ],
)
def test_what_a_plan_can_not_be_run_with_is_refused_by_name(flags: str) -> None:
    with pytest.raises(InputError) as refused:
        job(f"{GPT} {flags}")
    assert [mistake.file for mistake in refused.value.mistakes] == [flags.split()[0].partition("=")[0]]


@pytest.mark.parametrize(
    "flags", ["--context-parallel-size 1", "--expert-model-parallel-size 1", "--mtp-num-layers 0", "--lr 1"]
)
def test_harmless_values_pass(flags: str) -> None:
    assert job(f"{GPT} {flags}").notes == ()


@pytest.mark.parametrize(
    "flag", ["--tensor-model-parallel", "--num-layer", "--tensor_model_parallel_size", "--pipeline-model"]
)
def test_a_flag_that_is_nearly_one_is_refused(flag: str) -> None:
    with pytest.raises(InputError, match=f"{flag}: is not a flag of the framework, which accepts no abbreviations"):
        job(f"{GPT} {flag} 4")


def test_a_flag_of_ones_own_passes() -> None:
    assert job(f"{GPT} --my-flag 3 --num-layers-of-mine 4").arguments.text("--my-flag") == "3"


@pytest.mark.parametrize(
    "missing", ["--hidden-size", "--num-attention-heads", "--micro-batch-size", "--seq-length", "--bf16"]
)
def test_what_is_missing_is_named(missing: str) -> None:
    words = GPT.split()
    at = words.index(missing)
    del words[at : at + (1 if missing == "--bf16" else 2)]
    with pytest.raises(InputError, match=f"{missing}: "):
        job(" ".join(words))


def test_frameworks_are_told_apart(tmp_path: Path) -> None:
    script = tmp_path / "pretrain_gpt.py"

    def named(text: str, flags: str = "", **choices: Any) -> tuple[str, str | None]:
        script.write_text(text)
        framework = job(f"{LLAMA} {flags}", str(script), **choices).framework
        return framework.name, framework.export_version

    assert named("import torch") == ("megatron", None)
    assert named("from mindspeed_llm import megatron_adaptor\n") == ("mindspeed-llm", None)
    assert named("import mindspeed.megatron_adaptor\n") == ("mindspeed", "0.12")
    assert named("import mindspeed.megatron_adaptor\n", framework_version="26.1") == ("mindspeed", "0.13")
    assert named("# import mindspeed\n", "--reuse-fp32-param") == ("mindspeed-llm", None)
    assert named("import mindspeed\n", "--tokenizer-name-or-path x") == ("mindspeed-llm", None)
    assert named("import mindspeed\n", framework="megatron", framework_version="0.15") == ("megatron", "0.15")
    core = tmp_path / "megatron" / "core"
    core.mkdir(parents=True)
    (core / "package_info.py").write_text("MAJOR = 0\nMINOR = 14\nPATCH = 1\nraise SystemExit\n")
    assert named("import torch") == ("megatron", "0.14")


def test_something_else_is_no_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is not called as a training script of Megatron-LM"):
        job("--config x.yaml", "other.py")


def read_lines(make: Callable[[], Job]) -> list[str]:
    with pytest.raises(InputError) as refused:
        make()
    return str(refused.value).splitlines()


def test_every_refusal_is_one_line() -> None:
    assert len(read_lines(lambda: job(f"{GPT} --fp8-format hybrid --context-parallel-size 2"))) == 2
