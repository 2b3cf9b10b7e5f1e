"""The evaluation on a folder of small experiments that are called as the paper's settings."""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.cli.entry import poseidon, run
from poseidon.paper import registry
from poseidon.paper.conduct import Evaluation, kept_studies
from poseidon.paper.study import Tables
from tests.cli.conftest import cli

__all__ = ["cli"]

QUICK = {"static-formula", "pruning", "comparisons", "scale", "spaces", "paper-plans"}
"""Studies that are quick on small experiments; the others have tests of their own, with less to measure."""
STUDIES = tuple(study for study in registry.STUDIES if study.name in QUICK)
EXHIBITS = tuple(exhibit for exhibit in registry.EXHIBITS if QUICK.issuperset(exhibit.studies))
NAMES = sorted({name for study in STUDIES for name in study.experiments})
MODEL = {"num_layers": 6, "hidden_size": 512, "ffn_hidden_size": 2048, "num_attention_heads": 8, "vocab_size": 8000}
CLUSTER: dict[str, Any] = {
    "name": "two-types",
    "accelerators": {
        "fast": {"peak_tflops": 200.0, "memory_gb": 16.0},
        "slow": {"peak_tflops": 130.0, "memory_gb": 12.0},
    },
    "nodes": [
        {"accelerator": "fast", "count": 1, "devices": 2},
        {"accelerator": "slow", "count": 1, "devices": 2},
    ],
    "links": {
        "intra_node": {"bandwidth_gbps": 800.0, "latency_us": 5.0},
        "inter_node": {"bandwidth_gbps": 100.0, "latency_us": 10.0},
    },
}
TRAINING = {"global_batch_size": 32, "seq_length": 512, "micro_batch_sizes": [1, 2], "schedules": ["1f1b"]}


def write_experiments(folder: Path, names: list[str] = NAMES) -> Path:
    """A small experiment for each name, with a model that is called after it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        parts = {"model": {"name": f"model-of-{name}", **MODEL}, "cluster": CLUSTER, "training": TRAINING}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(parts), encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Finished:
    """A finished evaluation of small experiments."""

    experiments: Path
    out: Path

    @property
    def evaluation(self) -> Evaluation:
        """Its rows."""
        return kept_studies(STUDIES, self.out)

    @property
    def tables(self) -> Tables:
        """The rows alone."""
        return {name: found.rows for name, found in self.evaluation.found.items()}


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Made once for all processes of the test run. Do not change what it holds."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "evaluation"
    folder.mkdir(exist_ok=True)
    experiments, out = folder / "experiments", folder / "out"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "docs" / "results.md").exists():  # written last
            write_experiments(experiments)
            names = [exhibit.name for exhibit in EXHIBITS]
            arguments = ["paper", *names, "--experiments", experiments, "--out", out, "--page", folder / "docs", "-q"]
            assert run(poseidon, "poseidon", [str(argument) for argument in arguments]) == 0
    return Finished(experiments, out)


@pytest.fixture
def finished(finished_once: Finished, tmp_path: Path) -> Finished:
    """A copy that a test may change."""
    shutil.copytree(finished_once.experiments, tmp_path / "experiments")
    shutil.copytree(finished_once.out, tmp_path / "out")
    return Finished(tmp_path / "experiments", tmp_path / "out")
