"""A plan applied: node order and master, checkpoints, a plan that is given, the cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.launch.cache import cache_directory, cache_file, is_repeatable, keep_plan
from poseidon.output.plan_file import plan_from_json
from poseidon.search.result import TerminationReason
from tests.launch.conftest import Ran

MODEL = (
    "--num-layers 26 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 --swiglu "
    "--normalization RMSNorm --position-embedding-type rope --disable-bias-linear --seq-length 4096 "
    "--untie-embeddings-and-output-weights --max-position-embeddings 4096 --vocab-size 32000 --bf16 "
    "--micro-batch-size 1 --global-batch-size 32 --use-distributed-optimizer"
)
TINY = (
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --max-position-embeddings 512 "
    "--micro-batch-size 1 --global-batch-size 32 --bf16 --vocab-size 1000 --tensor-model-parallel-size 8"
)


class Launch:
    """`poseidon launch --dry-run --json` with a cluster."""

    def __init__(self, cli: Callable[..., Ran], cluster: Path) -> None:
        self.cli, self.cluster = cli, cluster

    def __call__(self, command: str, *options: str | Path, cluster: bool = True) -> Ran:
        where = ("--cluster", self.cluster) if cluster else ()
        fixed = ("launch", "--dry-run", "--json", "--schedule", "1f1b")
        return self.cli(*fixed, *where, *options, "--", *command.split())

    def result(self, command: str, *options: str | Path, cluster: bool = True) -> dict[str, Any]:
        ran = self(command, *options, cluster=cluster)
        assert ran.status == 0, ran.err
        [result] = ran.data["launches"]
        assert isinstance(result, dict)
        return result


@pytest.fixture
def on_two_kinds(cli: Callable[..., Ran], cluster_file: Callable[..., Path]) -> Launch:
    """The plan begins on the larger devices, which are those of the user's second node."""
    return Launch(cli, cluster_file("small-first"))


@pytest.fixture
def on_one(cli: Callable[..., Ran], cluster_file: Callable[..., Path]) -> Launch:
    return Launch(cli, cluster_file("one-a100"))


def test_every_node_gets_its_number_in_the_plans_order(on_two_kinds: Launch) -> None:
    """All nodes, each with its own command: together they are the plan, and all meet at the plan's first node."""
    results = []
    for rank in range(2):
        launcher = f"torchrun --nnodes 2 --node_rank={rank} --nproc-per-node 8 --master_addr small --master_port 6000"
        results.append(on_two_kinds.result(f"{launcher} t.py {MODEL}", "--fixed-pp", "2", "--hosts", "small,big"))
    plan = results[0]["plan"]
    assert plan["stages"] == results[1]["plan"]["stages"]
    order = [node for stage in plan["stages"] for node in stage["nodes"]]
    assert order == [1, 0]
    for rank, result in enumerate(results):
        command = result["command"]
        assert f"--node_rank={order.index(rank)}" in command
        assert command[command.index("--master_addr") + 1] == "big"
        assert command[command.index("--master_port") + 1] == "6000"
    # The same flags for the script on both nodes.
    assert len({tuple(result["command"][result["command"].index("t.py") :]) for result in results}) == 1


def test_an_endpoint_moves_as_the_master_does(on_two_kinds: Launch) -> None:
    text = f"torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend=static --rdzv_endpoint=small:7000 t.py {MODEL}"
    command = on_two_kinds.result(text, "--fixed-pp", "2", "--hosts", "small,big")["command"]
    assert "--rdzv_endpoint=big:7000" in command
    assert command[command.index("--node-rank") + 1] == "1"


def test_another_master_needs_an_address(on_two_kinds: Launch) -> None:
    ran = on_two_kinds(f"torchrun --nnodes 2 --nproc-per-node 8 --master-addr small t.py {MODEL}", "--fixed-pp", "2")
    assert ran.status == 2
    assert ran.mistakes[-1].startswith("--hosts: are needed: the plan begins on node 1")


def test_a_time_limit_can_not_promise_one_plan_to_all_nodes(on_two_kinds: Launch) -> None:
    text = f"torchrun --nnodes 2 --nproc-per-node 8 t.py {MODEL}"
    ran = on_two_kinds(text, "--time-limit", "1e-6", "--hosts", "small,big")
    assert ran.status in (2, 4)
    assert "other nodes may come to another plan" in ran.err or "before any plan was found" in ran.err


@pytest.mark.parametrize(
    ("launcher", "message"),
    [
        ("--nnodes 3 --nproc-per-node 8", "--nnodes: is 3; "),
        ("--nnodes 2 --nproc-per-node 4", "--nproc-per-node: is 4 on node 0; "),
        ("--nnodes 2 --nproc-per-node 8 --rdzv-backend etcd", "--rdzv-backend: etcd numbers nodes by their addresses"),
    ],
)
def test_a_call_for_another_cluster_is_refused(on_two_kinds: Launch, launcher: str, message: str) -> None:
    ran = on_two_kinds(f"torchrun {launcher} t.py {MODEL}")
    assert ran.status == 2
    assert ran.err.startswith(message)


def checkpoint(directory: Path) -> Path:
    (directory / "ckpt").mkdir()
    (directory / "ckpt" / "latest_checkpointed_iteration.txt").write_text("100")
    return directory / "ckpt"


def test_a_checkpoint_that_the_split_breaks_is_refused(on_one: Launch, tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    text = f"torchrun --nproc-per-node 8 t.py {TINY} --load {path} --ckpt-format torch"
    ran = on_one(text)
    assert ran.status == 2
    assert "has a checkpoint of another split (--tensor-model-parallel-size, --pipeline-model-parallel-size)" in ran.err
    result = on_one.result(text, "--allow-checkpoint-change")
    assert any("it must be converted" in note for note in result["notes"])
    assert on_one(text, "--framework", "mindspeed-llm").status == 2


def test_other_checkpoints_are_fine(on_one: Launch, tmp_path: Path) -> None:
    start = f"torchrun --nproc-per-node 8 t.py {TINY}"
    fresh = on_one.result(f"{start} --load {tmp_path / 'nothing'} --ckpt-format torch")
    assert fresh["notes"] == []
    path = checkpoint(tmp_path)
    notes = on_one.result(f"{start} --load {path}")["notes"]
    assert "torch_dist checkpoints are resharded" in notes[0]
    assert "the vocabulary was padded to a multiple of 1024, and TP changes" in notes[1]
    same = start.replace("--tensor-model-parallel-size 8", f"--tensor-model-parallel-size 8 --load {path}")
    kept = on_one.result(f"{same} --sequence-parallel --ckpt-format torch", "--fixed-tp", "8", "--fixed-pp", "1")
    assert kept["notes"] == []


def test_a_given_plan_is_used_and_needs_no_cluster(on_one: Launch, tmp_path: Path) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    searched = on_one.result(text, "--out", tmp_path / "runs")
    plan = tmp_path / "runs" / "plan.json"
    given = on_one.result(text, "--plan", plan, cluster=False)
    assert (given["command"], given["plan_from"]) == (searched["command"], "file")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("--num-layers 8", "--num-layers 9", "inputs.model.num_layers: is 8, but 9 in the command"),
        ("--global-batch-size 32", "--global-batch-size 64", "inputs.training.global_batch_size: is 32, but 64"),
        ("--seq-length 512", "--seq-length 256", "inputs.training.seq_length: is 512, but 256"),
        ("--bf16", "--fp16", "inputs.training.precision: is bf16, but fp16"),
        ("--nproc-per-node 8", "--nproc-per-node 4", "--nproc-per-node: is 4 on node 0"),
    ],
)
def test_a_plan_for_something_else_is_refused(
    on_one: Launch, tmp_path: Path, before: str, after: str, message: str
) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    on_one.result(text, "--out", tmp_path)
    ran = on_one(text.replace(before, after), "--plan", tmp_path / "plan.json", cluster=False)
    assert ran.status == 2
    assert message in ran.err


def test_a_plan_for_other_devices_is_refused(on_one: Launch, cluster_file: Callable[..., Path], tmp_path: Path) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    on_one.result(text, "--out", tmp_path)
    on_one.cluster = cluster_file("one-a6000")
    assert "the cluster here has 8 x 154.8 TFLOPS 48 GB" in on_one(text, "--plan", tmp_path / "plan.json").err


def test_a_plan_whose_tp_the_core_does_not_take_is_refused(on_one: Launch) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY} --group-query-attention --num-query-groups 2"
    ran = on_one(text, "--fixed-tp", "4", "--framework-version", "0.14")
    assert "needs TP to divide --num-query-groups, 2, and the plan has 4" in ran.err
    assert on_one(text, "--fixed-tp", "4", "--framework-version", "0.16").status == 0


def test_the_cache_is_keyed_by_everything(on_one: Launch, cluster_file: Callable[..., Path]) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"

    def origin(command: str = text, *options: str) -> str:
        return str(on_one.result(command, *options)["plan_from"])

    assert [origin(), origin()] == ["search", "cache"]
    assert origin(f"{text} --lr 2e-4") == "cache"  # costs nothing
    assert origin(text.replace("--seq-length 512", "--seq-length 256")) == "search"
    assert origin(text, "--fixed-tp", "2") == "search"
    assert origin(text, "--no-cache") == "search"
    assert origin() == "cache"
    cluster = yaml.safe_load(on_one.cluster.read_text())
    cluster["links"]["intra_node"]["bandwidth_gbps"] = 100
    on_one.cluster.write_text(yaml.safe_dump(cluster))
    assert origin() == "search"


def test_only_what_every_search_ends_with_is_kept(on_one: Launch, own_cache: Path) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    plan = plan_from_json(on_one.result(text, "--no-cache")["plan"], "plan")
    assert not own_cache.exists()
    for reason in TerminationReason:
        ended = replace(plan, search=replace(plan.search, termination=reason))
        keep_plan(ended)
        depends_on_time = reason in ("time limit", "interrupted", "a part of the search kept failing")
        assert is_repeatable(ended) is not depends_on_time
        assert cache_file(plan.experiment).exists() is not depends_on_time, reason
        cache_file(plan.experiment).unlink(missing_ok=True)


@pytest.mark.parametrize("damage", ["half", "empty", "schema", "layers", "devices", "directory", "other"])
def test_a_damaged_cache_is_made_anew(on_one: Launch, damage: str) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    first = on_one.result(text)
    [file] = cache_directory().glob("*.json")
    data = json.loads(file.read_text())
    if damage == "half":
        file.write_text(file.read_text()[:500])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "directory":
        file.unlink()
        file.mkdir()
    else:
        if damage == "schema":
            data["schema"] = "poseidon.plan/9"
        elif damage == "layers":
            data["stages"][0]["layers"], data["stages"][0]["layer_range"] = 7, [0, 7]
        elif damage == "devices":
            data["stages"][0]["devices"] = [[7, 6, 5, 4, 3, 2, 1, 1]]
        else:
            data["inputs"]["training"]["seq_length"] = 64
        file.write_text(json.dumps(data))
    again = on_one.result(text)
    assert (again["plan_from"], again["command"]) == ("search", first["command"])


def test_a_profile_counts_by_its_content(on_one: Launch, tmp_path: Path) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    profile = measured(tmp_path / "profile.json", forward_ms=5.0)
    first = on_one.result(text, "--profile", profile, "--fixed-tp", "1", "--fixed-pp", "1")
    moved = measured(tmp_path / "elsewhere" / "profile.json", forward_ms=5.0)
    again = on_one.result(text, "--profile", moved, "--fixed-tp", "1", "--fixed-pp", "1")
    assert (first["plan_from"], again["plan_from"]) == ("search", "cache")
    assert first["plan"]["micro_batch_size"] == 2, "the profile has no other size"
    measured(moved, forward_ms=6.0)
    slower = on_one.result(text, "--profile", moved, "--fixed-tp", "1", "--fixed-pp", "1")
    assert slower["plan_from"] == "search"
    assert slower["plan"]["iteration_time_ms"] > first["plan"]["iteration_time_ms"]


def measured(path: Path, forward_ms: float) -> Path:
    """A profile of micro-batch 2 alone."""
    at = {"accelerator": "a100-sxm-80gb", "tp": 1, "micro_batch_size": 2}
    row = {**at, "forward_ms": forward_ms, "backward_ms": 10.0, "weight_bytes": 1e6, "activation_bytes": 1e6}
    data = {
        "schema": "poseidon.profile/1",
        "model": "tiny",
        "seq_length": 512,
        "precision": "bf16",
        "layers": [{**row, "layer_type": "dense"}],
        "embedding": [row],
        "head": [row],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def test_what_would_fail_when_training_starts_is_refused_now(on_one: Launch) -> None:
    text = f"torchrun --nproc-per-node 8 t.py {TINY}"
    ran = on_one(f"{text} --eval-global-batch-size 12", "--fixed-dp", "8", "--micro-batch-size", "4")
    assert "DP x micro-batch, 32, does not divide --eval-global-batch-size, 12" in ran.err
    wide = on_one(f"{text} --ffn-hidden-size 1002", "--fixed-tp", "4")
    assert "TP 4 does not divide --ffn-hidden-size, 1002; search with another TP degree, e.g. --fixed-tp 2" in wide.err
    chunks = ("--schedule", "interleaved_1f1b", "--fixed-pp", "4")
    alone = on_one.cli(
        "launch",
        "--dry-run",
        *chunks,
        "--cluster",
        on_one.cluster,
        "--",
        *text.split(),
        "--no-overlap-p2p-communication",
    )
    assert "its interleaved schedule counts overlapped messages" in alone.err


def test_no_plan_fits_is_said_with_its_status(on_one: Launch) -> None:
    large = TINY.replace("--hidden-size 1024", "--hidden-size 65536").replace("--num-layers 8", "--num-layers 80")
    ran = on_one(f"torchrun --nproc-per-node 8 t.py {large}")
    assert (ran.status, ran.out) == (3, "")


def test_overlaps_go_where_they_can_not_stay(on_one: Launch) -> None:
    text = (
        f"torchrun --nproc-per-node 8 t.py {TINY} --sequence-parallel --tp-comm-overlap --defer-embedding-wgrad-compute"
    )
    result = on_one.result(text, "--fixed-tp", "1")
    gone = {change["flag"] for change in result["changes"] if change["kind"] == "removed"}
    assert gone == {"--sequence-parallel", "--tp-comm-overlap", "--defer-embedding-wgrad-compute"}
    assert "--tp-comm-overlap" in on_one.result(text, "--fixed-tp", "4")["command"]


def test_a_recomputation_of_the_users_choice_replaces_the_commands(on_one: Launch) -> None:
    text = (
        f"torchrun --nproc-per-node 8 t.py {TINY} --recompute-granularity full --recompute-method block "
        "--recompute-num-layers 2"
    )
    assert on_one(text).status == 2
    none = on_one.result(text, "--recompute", "none")["command"]
    assert not [word for word in none if word.startswith("--recompute")]
    full = on_one.result(text, "--recompute", "full")["command"]
    assert full[full.index("--recompute-method") + 1] == "uniform"
    assert full[full.index("--recompute-num-layers") + 1] == "1"


def test_a_version_is_a_version(on_one: Launch) -> None:
    ran = on_one("torchrun t.py", "--framework", "mindspeed", "--framework-version", "newest")
    assert (ran.status, ran.err.startswith("--framework-version: 'newest' is not a version")) == (2, True)


@pytest.mark.parametrize(
    "options",
    [("--measure", "--profile", "x"), ("--plan", "x", "--measure"), ("--plan", "x", "--profile", "y")],
)
def test_options_that_exclude_each_other_are_refused(on_one: Launch, options: tuple[str, ...]) -> None:
    assert on_one("torchrun t.py", *options).status == 2


def test_measuring_for_several_nodes_is_refused(on_two_kinds: Launch) -> None:
    ran = on_two_kinds(f"torchrun --nnodes 2 --nproc-per-node 8 t.py {MODEL}", "--measure")
    assert ran.status == 2
    assert "--measure: measures on this machine alone" in ran.err
