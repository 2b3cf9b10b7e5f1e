"""PyTorch's own torchrun under `poseidon launch`: what it takes, starts, and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.launch.flag_table import launcher_flags
from tests.launch.conftest import write_program
from tests.launch.test_scripts import meaning
from tests.processes import wait_until

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parent / "dump_arguments.py"
ROOT = Path(__file__).parents[2]
SLOW_MACHINE_S = 300
MODEL = (
    "--num-layers 6 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 "
    "--micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 100 --tensor-model-parallel-size 2"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cluster_of(folder: Path, *nodes: tuple[str, int]) -> Path:
    """CPUs of two speeds."""
    data = {
        "name": "cpus",
        "accelerators": {
            "fast": {"peak_tflops": 0.2, "memory_gb": 8, "vendor": "cpu"},
            "slow": {"peak_tflops": 0.1, "memory_gb": 1, "vendor": "cpu"},
        },
        "nodes": [{"accelerator": kind, "count": 1, "devices": devices} for kind, devices in nodes],
        "links": {"intra_node": {"bandwidth_gbps": 50}, "inter_node": {"bandwidth_gbps": 10}},
    }
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The programs of this interpreter's PyTorch, and nothing of the machine's."""
    programs = folder / "bin"
    for name, words in (
        ("torchrun", f"{shlex.quote(sys.executable)} -m torch.distributed.run"),
        ("python", shlex.quote(sys.executable)),
    ):
        write_program(programs / name, f'#!/bin/sh\nexec {words} "$@"\n')
    (folder / "dump").mkdir(exist_ok=True)
    return {
        "PATH": f"{programs}:{os.defpath}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "DUMP": str(folder / "dump"),
        "OMP_NUM_THREADS": "1",
        **more,
    }


def launch(folder: Path, script: str, *options: str, **more: str) -> subprocess.Popen[bytes]:
    """Its standard output goes to the file `out`."""
    path = folder / f"train{len(list(folder.glob('train*.sh')))}.sh"
    path.write_text(script)
    command = [sys.executable, "-m", "poseidon.cli", "launch", "--schedule", "1f1b", *options, "--", "bash", str(path)]
    with (folder / "out").open("a") as out:
        return subprocess.Popen(command, env=environment(folder, **more), stdout=out)


def dumped(folder: Path) -> dict[int, dict[str, Any]]:
    files = (folder / "dump").glob("rank-*.json")
    return {int(file.stem.removeprefix("rank-")): json.loads(file.read_text()) for file in files}


def test_the_options_are_those_of_pytorch() -> None:
    from torch.distributed.run import get_args_parser

    known = launcher_flags()
    for action in get_args_parser()._actions:
        for name in action.option_strings:
            if name in ("-h", "--help"):
                continue
            flag = known[name.replace("_", "-")]
            takes = "0" if action.nargs == 0 else "1"
            assert flag.num_values == takes, name


def test_a_script_starts_the_real_torchrun_with_the_plan(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, ("fast", 2))
    script = f"""
torchrun --nproc_per_node 2 --master_port {free_port()} {SCRIPT} {MODEL} --seed 7 | tee {tmp_path}/log
exit "${{PIPESTATUS[0]}}"
"""
    run = launch(tmp_path, script, "--cluster", str(cluster), "--fixed-pp", "2", "-q")
    assert run.wait(SLOW_MACHINE_S) == 0
    ranks = dumped(tmp_path)
    assert sorted(ranks) == [0, 1]
    for call in ranks.values():
        flags = meaning(call["argv"])
        assert (flags.tensor_model_parallel_size, flags.pipeline_model_parallel_size, flags.seed) == (1, 2, 7)
        assert flags.pipeline_model_parallel_layout.count("|") == 1
        assert call["world_size"] == 2


def test_a_failure_and_a_signal_pass_through(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, ("fast", 1))
    options = ("--cluster", str(cluster), "-q")
    start = f"python -m torch.distributed.launch --nproc_per_node=1 --master_port={free_port()} {SCRIPT} {MODEL}"
    own = subprocess.run(
        shlex.split(start), env=environment(tmp_path, STATUS="3"), capture_output=True, timeout=SLOW_MACHINE_S
    )
    assert own.returncode != 0
    assert launch(tmp_path, f"exec {start}", *options, STATUS="3").wait(SLOW_MACHINE_S) == own.returncode
    (tmp_path / "dump" / "rank-0.json").unlink()
    run = launch(tmp_path, f"{start} --wait", *options)
    assert wait_until(lambda: dumped(tmp_path), SLOW_MACHINE_S)
    os.kill(run.pid, signal.SIGTERM)
    assert run.wait(SLOW_MACHINE_S) == 128 + signal.SIGTERM
    assert (tmp_path / "dump" / "signal-0").read_text() == "SIGTERM"


def test_two_nodes_meet_at_the_plans_first_node(tmp_path: Path) -> None:
    """A large head wants the fast node last: rank 0 and the master move to the user's second node, the slow one."""
    cluster = cluster_of(tmp_path, ("fast", 1), ("slow", 1))
    options = ("--cluster", str(cluster), "--hosts", "localhost,127.0.0.1", "--fixed-pp", "2", "-q")
    port = free_port()
    model = MODEL.replace("--vocab-size 100", "--vocab-size 50000")
    start = f"torchrun --nnodes 2 --nproc_per_node 1 --master_addr localhost --master_port {port} --node_rank"
    runs = [
        launch(tmp_path, f"{start} {rank} {SCRIPT} {model}", *options, NODE=str(rank), GLOO_SOCKET_IFNAME="lo")
        for rank in range(2)
    ]
    assert [run.wait(SLOW_MACHINE_S) for run in runs] == [0, 0]
    ranks = dumped(tmp_path)
    assert {rank: call["node"] for rank, call in ranks.items()} == {0: "1", 1: "0"}
    assert ranks[0]["argv"] == ranks[1]["argv"]


def test_a_profile_is_measured_first_when_asked(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, ("fast", 1))
    script = f"torchrun --nproc_per_node 1 --master_port {free_port()} {SCRIPT} {MODEL}"
    options = ("--cluster", str(cluster), "--measure", "--micro-batch-size", "1", "--json")
    assert launch(tmp_path, script, *options).wait(SLOW_MACHINE_S) == 0
    [result] = json.loads((tmp_path / "out").read_text())["launches"]
    kept = Path(result["plan"]["inputs"]["profile"])
    profile = json.loads(kept.read_text())
    kept.write_text("{")
    assert launch(tmp_path, script, *options, "--dry-run").wait(SLOW_MACHINE_S) == 0
    assert json.loads(kept.read_text())["layers"], "a damaged profile is measured again"
    [row] = profile["layers"]
    assert row["accelerator"] == "fast"
    assert result["plan"]["stages"][0]["forward_ms"] == pytest.approx(
        6 * row["forward_ms"] + profile["embedding"][0]["forward_ms"] + profile["head"][0]["forward_ms"]
    )
