from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poseidon.inputs.model import Model

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[3]


def test_two_ranks_compute_what_one_computes(models: tuple[Model, ...]) -> None:
    """Values and gradients of every kind of layer, of embedding and head, with and without sequence parallelism."""
    worker = Path(__file__).with_name("two_ranks.py")
    described = [model.model_dump_json() for model in models]
    ran = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(worker), *described],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    num_layers = sum(len(model.distinct_layer_types) for model in models)
    assert ran.stdout.count(" ok") == 2 * (3 * num_layers + 2 * len(models))
