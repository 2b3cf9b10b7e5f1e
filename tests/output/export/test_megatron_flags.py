"""Flags of the Megatron family, taken by a parser with Megatron-LM's own flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from poseidon.output.export import export_plan
from poseidon.plan.plan import Plan
from tests.output.export.megatron_parser import megatron_parser
from tests.output.export.readers import file_text, flags_in

CASES: tuple[Any, ...] = (
    ("quickstart",),
    ("setting2",),
    ("setting4",),
    ("quickstart", {"schedules": ["interleaved_1f1b"]}),
    ("quickstart", {"recompute": "full"}),
    ("quickstart", {"recompute": "selective", "precision": "fp16", "distributed_optimizer": False}),
)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("version", ["0.16", "0.12", "0.9"])
def test_megatron_takes_all_flags(searched: Callable[..., Plan], case: Any, version: str) -> None:
    from poseidon.errors import InputError

    plan = searched(*case)
    try:
        export = export_plan(plan, "plan.json", "megatron", version)
    except InputError:
        assert version != "0.16"
        return
    flags = [word for flag in flags_in(file_text(export, "launch.sh")) for word in flag]
    args = megatron_parser().parse_args(flags)
    training, pipeline = plan.experiment.training, plan.pipeline
    assert args.sequence_parallel == (training.sequence_parallel and pipeline.tp != 1)
    assert args.use_distributed_optimizer == training.distributed_optimizer
    assert (args.bf16, args.fp16) == (training.precision == "bf16", training.precision == "fp16")
    assert args.recompute_granularity == (None if pipeline.recompute == "none" else pipeline.recompute)
    assert (args.seq_length, args.num_layers) == (training.seq_length, plan.experiment.model.num_layers)


@pytest.mark.parametrize("name", ["setting1", "setting2", "setting3", "setting4"])
def test_mindspeed_llm_adds_one_flag_of_its_own(searched: Callable[..., Plan], name: str) -> None:
    """``--num-layer-list`` is MindSpeed-LLM's (features_manager/pipeline_parallel/num_layer_list.py): one string."""
    parser = megatron_parser()
    parser.add_argument("--num-layer-list", type=str)
    export = export_plan(searched(name), "plan.json", "mindspeed-llm")
    args = parser.parse_args([word for flag in flags_in(file_text(export, "launch.sh")) for word in flag])
    counts = [int(count) for count in args.num_layer_list.split(",")]
    assert len(counts) == args.pipeline_model_parallel_size
    assert sum(counts) == args.num_layers


@pytest.mark.parametrize("case", [("quickstart",), ("setting4",), ("quickstart", {"recompute": "full"})], ids=str)
def test_flagscale_keys_become_flags(searched: Callable[..., Plan], case: Any) -> None:
    """FlagScale flattens its YAML to Megatron-LM's flags (flagscale/runner/utils.py) and adds these."""
    parser = megatron_parser()
    parser.add_argument("--enable-hetero", action="store_true")
    for name in ("process-meshes", "pipeline-layer-split"):
        parser.add_argument(f"--hetero-{name}", nargs="*", type=int)
    parser.add_argument("--hetero-device-types", nargs="*", type=str)
    parser.add_argument("--hetero-current-device-type", type=str)
    parser.add_argument("--expert-tensor-parallel-size-per-process-mesh", nargs="*", type=int)
    export = export_plan(searched(*case), "plan.json", "flagscale")
    train = yaml.safe_load(file_text(export, "train/plan.yaml"))
    args = parser.parse_args(flattened({**train["system"], **train["model"]}))
    assert args.enable_hetero
    assert sum(args.hetero_process_meshes[4::5]) == args.pipeline_model_parallel_size
    assert sum(args.hetero_pipeline_layer_split) == args.num_layers
    assert args.bf16


def flattened(block: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for key, value in block.items():
        flag = f"--{key.replace('_', '-')}"
        if isinstance(value, dict):
            words += flattened(value)
        elif isinstance(value, bool):
            words += [flag] if value else []
        else:
            words += [flag, *map(str, value)] if isinstance(value, list) else [flag, str(value)]
    return words


def test_the_parser_refuses_what_megatron_refuses() -> None:
    for words in (["--no-such-flag"], ["--pipeline-model-parallel-siz", "4"], ["--recompute-granularity", "some"]):
        with pytest.raises(ValueError, match=r"unrecognized|invalid choice"):
            megatron_parser().parse_args(words)
