"""Launch scripts as people write them: model flags stay, in order; conflicting flags go; the plan's flags are there."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.launch.conftest import NODES, Ran
from tests.output.export.megatron_parser import megatron_parser
from tests.output.export.readers import layers_of_layout

SCRIPTS = Path(__file__).parent / "scripts"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((SCRIPTS / "expected.yaml").read_text())
ACCEPTED = [name for name, case in EXPECTED.items() if "refused" not in case]
REFUSED = [name for name, case in EXPECTED.items() if "refused" in case]

PLANS = {
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--micro-batch-size",
    "--sequence-parallel",
    "--expert-model-parallel-size",
    "--pipeline-model-parallel-layout",
    "--num-layers-per-virtual-pipeline-stage",
    "--num-virtual-stages-per-pipeline-rank",
    "--microbatch-group-size-per-virtual-pipeline-stage",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
    "--overlap-p2p-communication-warmup-flush",
    "--overlap-param-gather-with-optimizer-step",
    "--num-layer-list",
    "--recompute-num-layers",
    "--tp-comm-overlap",
    "--use-ascend-mc2",
}
"""What a plan may change; everything else must stay."""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The launcher's part of a command line, with the script, and the script's arguments."""
    at = next(i for i, word in enumerate(words) if word.endswith(".py") or word == "megatron.pretrain")
    return list(words[: at + 1]), list(words[at + 1 :])


def others(words: Sequence[str]) -> list[list[str]]:
    """The flags that are none of a plan's, each with its values, in order."""
    groups: list[list[str]] = []
    for word in words:
        if word.startswith("--") or not groups:
            groups.append([])
        groups[-1].append(word)
    return [group for group in groups if group[0].partition("=")[0] not in PLANS]


def meaning(words: Sequence[str]) -> argparse.Namespace:
    """What Megatron-LM's own flags say; what its parser doesn't know is in `unknown`."""
    # MindSpeed-LLM's own kind of tokenizer, which Megatron-LM does not have.
    known = ["HuggingFaceTokenizer" if word == "PretrainedFromHF" else word for word in words]
    namespace, unknown = megatron_parser().parse_known_args(known)
    namespace.unknown = unknown
    return namespace


def layers_by_stage(flags: argparse.Namespace) -> list[list[int]]:
    """Layers of each stage's chunks, as Megatron-LM and MindSpeed-LLM split them."""
    stages = flags.pipeline_model_parallel_size
    if flags.pipeline_model_parallel_layout:
        return layers_of_layout(flags.pipeline_model_parallel_layout, stages)
    if "--num-layer-list" in flags.unknown:
        listed = flags.unknown[flags.unknown.index("--num-layer-list") + 1].split(",")
        assert len(listed) == stages
        return [[int(count)] for count in listed]
    first, last = flags.decoder_first_pipeline_num_layers, flags.decoder_last_pipeline_num_layers
    if first is None:
        assert flags.num_layers % stages == 0
        return [[flags.num_layers // stages]] * stages
    middle, count = flags.num_layers - first - last, stages - 2
    return [[first], *([[middle // count]] * count if count else []), [last]]


def launched(cli: Callable[..., Ran], cluster: Path, case: dict[str, Any], words: Sequence[str]) -> Ran:
    return cli("launch", "--dry-run", "--json", "-q", "--cluster", cluster, *case.get("options", ()), "--", *words)


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_script_is_rewritten_right(
    name: str,
    cli: Callable[..., Ran],
    cluster_file: Callable[..., Path],
    recorded: Callable[..., list[list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = EXPECTED[name]
    monkeypatch.chdir(SCRIPTS)
    [words] = recorded(SCRIPTS / f"{name}.sh")
    ran = launched(cli, cluster_file(case["cluster"]), case, words)
    assert ran.status == 0, ran.err
    [result] = ran.data["launches"]
    plan, new = result["plan"], result["command"]
    assert result["framework"] == case["framework"]
    launcher, arguments = split(new)
    old_launcher, old_arguments = split(words)

    assert others(old_arguments) == others(arguments)[: len(others(old_arguments))]
    assert set(case.get("there", ())) <= set(new)
    assert not {word.partition("=")[0] for word in new} & set(case.get("gone", ()))
    check_meaning(meaning(arguments), plan, NODES[case["cluster"]])
    for option in ("--nnodes", "--nproc-per-node", "--nproc_per_node", "--master-port", "--master_port"):
        assert [w for w in launcher if w.startswith(option)] == [w for w in old_launcher if w.startswith(option)]
    again = launched(cli, cluster_file(case["cluster"]), case, words).data["launches"][0]
    assert (again["command"], again["plan_from"]) == (new, "cache")


def check_meaning(flags: argparse.Namespace, plan: dict[str, Any], nodes: Sequence[tuple[str, int]]) -> None:
    """Megatron-LM's parser reads the plan out of the flags, and its own conditions hold."""
    tp, pp = flags.tensor_model_parallel_size, flags.pipeline_model_parallel_size
    world_size = sum(devices for _, devices in nodes)
    assert {stage["tp"] for stage in plan["stages"]} == {tp}
    assert (plan["pp"], plan["micro_batch_size"]) == (pp, flags.micro_batch_size)
    assert tp * pp * plan["dp"] == world_size
    assert flags.global_batch_size == plan["dp"] * plan["micro_batch_size"] * plan["num_micro_batches"]
    planned = [layers if isinstance(layers, list) else [layers] for layers in (s["layers"] for s in plan["stages"])]
    assert layers_by_stage(flags) == planned
    assert sum(map(sum, planned)) == flags.num_layers
    training = plan["inputs"]["training"]
    assert flags.seq_length == training["seq_length"]
    assert flags.sequence_parallel == (training["sequence_parallel"] and tp > 1)
    assert flags.use_distributed_optimizer == training["distributed_optimizer"]
    assert flags.num_attention_heads % tp == 0
    assert flags.expert_model_parallel_size in (None, 1)
    if flags.recompute_granularity == "full":
        assert (flags.recompute_method, flags.recompute_num_layers) == ("uniform", 1)
        assert plan["recompute"] == "full"
    else:
        assert plan["recompute"] != "full"


@pytest.mark.parametrize("name", REFUSED)
def test_the_script_is_refused_in_one_line(
    name: str, cli: Callable[..., Ran], cluster_file: Callable[..., Path], recorded: Callable[..., list[list[str]]]
) -> None:
    case = EXPECTED[name]
    [words] = recorded(SCRIPTS / f"{name}.sh")
    ran = launched(cli, cluster_file(case["cluster"]), case, words)
    assert (ran.status, ran.out) == (2, "")
    assert [line for line in ran.mistakes if case["refused"] in line], ran.err
    assert all(line.startswith("--") for line in ran.mistakes)


def test_there_are_twenty_styles() -> None:
    files = {path.stem for path in SCRIPTS.glob("*.sh")}
    assert files == set(EXPECTED)
    assert len(ACCEPTED) >= 20


def test_uneven_layers_are_read_right() -> None:
    """The reader of this test itself, on splits that Megatron-LM's documentation gives."""
    assert layers_by_stage(meaning(["--pipeline-model-parallel-size", "2", "--num-layers", "7",
                                    "--decoder-first-pipeline-num-layers", "3",
                                    "--decoder-last-pipeline-num-layers", "4"])) == [[3], [4]]  # fmt: skip
    assert json.dumps(layers_by_stage(meaning(["--pipeline-model-parallel-size", "2",
                                               "--pipeline-model-parallel-layout", "Et|t*2|t|t*3L"])))  # fmt: skip
