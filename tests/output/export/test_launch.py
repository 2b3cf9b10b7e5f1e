"""A tiny model trained under an exported plan: real torchrun, one launcher a node, gloo between the processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.inputs.experiment import load_experiment
from poseidon.output.export import Export, export_plan, write_files
from poseidon.plan.plan import Plan
from poseidon.plan.timing import pipeline_timeline
from poseidon.planner import find_plan
from tests.output.export.readers import file_text

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parent / "tiny_pipeline.py"
SLOW_MACHINE_S = 300
"""Start-up takes most of it where many share the machine."""
EXPERIMENT: dict[str, Any] = {
    "model": {
        "name": "twelve-layers",
        "num_layers": 12,
        "hidden_size": 512,
        "ffn_hidden_size": 2048,
        "num_attention_heads": 8,
        "vocab_size": 13,
    },
    "cluster": {
        "name": "four-slow-devices",
        "accelerators": {
            "fast": {"peak_tflops": 0.6, "memory_gb": 16.0},
            "slow": {"peak_tflops": 0.3, "memory_gb": 16.0},
        },
        "nodes": [
            {"accelerator": "fast", "count": 1, "devices": 2},
            {"accelerator": "slow", "count": 1, "devices": 2},
        ],
        "links": {
            "intra_node": {"bandwidth_gbps": 800.0, "latency_us": 5.0},
            "inter_node": {"bandwidth_gbps": 100.0, "latency_us": 10.0},
        },
    },
    "training": {"global_batch_size": 8, "seq_length": 256, "micro_batch_sizes": [1]},
    "search": {"fixed_dp": 1, "fixed_tp": 1, "fixed_pp": 4},
}
"""Stages of 25 to 170 ms: long against what a process does beside sleeping."""


def planned(directory: Path, schedule: str, depths: tuple[int, ...]) -> Plan:
    """The best plan; with `depths`, it is given these instead, so that its order is one that no framework knows."""
    path = directory / "experiment.yaml"
    path.write_text(yaml.safe_dump(EXPERIMENT))
    plan = find_plan(load_experiment(path, training={"schedules": [schedule]}))
    assert isinstance(plan, Plan)
    if not depths:
        return plan
    changed = replace(plan.pipeline, depths=depths)
    return replace(plan, pipeline=replace(changed, iteration_time_ms=pipeline_timeline(changed).iteration_time_ms))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[[Export, dict[str, Any]], list[dict[str, Any]]]]:
    """Runs launch.sh for every place at the same time; returns what the ranks wrote, in their order."""
    running: list[subprocess.Popen[str]] = []

    def run(export: Export, times: dict[str, Any]) -> list[dict[str, Any]]:
        out, results = tmp_path / "out", tmp_path / "results"
        results.mkdir()
        write_files(export.files, out)
        (tmp_path / "times.json").write_text(json.dumps(times))
        env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        arguments = [str(SCRIPT), str(tmp_path / "times.json"), str(results)]
        for place in export.places:
            command = ["bash", str(out / "launch.sh"), str(place.number), *arguments]
            options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            running.append(subprocess.Popen(command, env=env, start_new_session=True, **options))
        for process in running:
            text, _ = process.communicate(timeout=SLOW_MACHINE_S)
            assert process.returncode == 0, text[-3000:]
        return [json.loads((results / f"{rank}.json").read_text()) for rank in range(len(list(results.iterdir())))]

    yield run
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def alone(num_layers: int, sequences: int) -> list[float]:
    """Losses of the same training in one process, without stages or micro-batches."""
    import tests.output.export.tiny_pipeline as tiny

    names = ["tok_embeddings", *(f"layers.{number}" for number in range(num_layers)), "norm", "lm_head"]
    parts = torch.nn.ModuleList(tiny.layer(name) for name in names)
    optimizer = torch.optim.SGD(parts.parameters(), lr=tiny.LEARNING_RATE)
    losses = []
    for iteration in range(tiny.ITERATIONS):
        x, targets = tiny.batch(iteration, sequences)
        for name, part in zip(names, parts, strict=True):
            x = torch.tanh(part(x)) if name.startswith("layers.") else part(x)
        loss = tiny.loss_of(x, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize(
    ("schedule", "depths"), [("eager_1f1b", ()), ("adaptive_1f1b", (3, 1, 2)), ("interleaved_1f1b", ())]
)
def test_training_runs_the_layers_and_the_order_of_the_plan(
    launch: Callable[..., list[dict[str, Any]]],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    schedule: str,
    depths: tuple[int, ...],
) -> None:
    plan = planned(tmp_path, schedule, depths)
    pipeline, export = plan.pipeline, export_plan(plan, "plan.json", "torchtitan")
    times = {
        f"{kind}_ms": [getattr(s, f"{kind}_ms")[chunk] for chunk in range(pipeline.num_chunks) for s in pipeline.stages]
        for kind in ("forward", "backward")
    }
    ranks = launch(export, {**times, "num_micro_batches": pipeline.num_micro_batches})
    assert len(ranks) == pipeline.pp == 4
    rows = file_text(export, "schedule.csv").splitlines()
    for stage, rank, row in zip(pipeline.stages, ranks, rows, strict=True):
        assert rank["layers"] == [list(range(first, end)) for first, end in stage.layer_ranges]
        operations = [cell[: cell.index(kind) + 1] for cell in row.split(",") for kind in "FB" if kind in cell]
        assert rank["ran"] == operations
    losses = ranks[-1]["losses"]
    assert losses == pytest.approx(alone(12, 8), rel=1e-4)
    assert losses[-1] < losses[0]
    # Sleeping takes no less than it should; how much more depends on who else uses the machine.
    measured, predicted = min(ranks[0]["milliseconds"][1:]), pipeline.iteration_time_ms
    simulated = with_measured_times(plan, ranks, ranks[0]["milliseconds"].index(measured))
    record_property("measured_ms", measured)
    print(
        f"\n{schedule}: {measured:.1f} ms measured; predicted {predicted:.1f} ms ({predicted / measured - 1:+.1%}), "
        f"with the operations' measured times {simulated:.1f} ms ({simulated / measured - 1:+.1%})"
    )
    assert measured > 0.97 * predicted


def with_measured_times(plan: Plan, ranks: list[dict[str, Any]], iteration: int) -> float:
    """The simulated iteration, if each stage's operations take as long as they took on average in this one."""
    stages = tuple(
        replace(
            stage,
            forward_ms=tuple(times["F"] for times in rank["took"][iteration]),
            backward_ms=tuple(times["B"] for times in rank["took"][iteration]),
        )
        for stage, rank in zip(plan.pipeline.stages, ranks, strict=True)
    )
    return pipeline_timeline(replace(plan.pipeline, stages=stages)).iteration_time_ms
