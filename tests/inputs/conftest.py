from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CLUSTER = {
    "name": "two-types",
    "accelerators": {
        "fast": {"peak_tflops": 300, "memory_gb": 64},
        "slow": {"peak_tflops": 150, "memory_gb": 32},
    },
    "nodes": [
        {"accelerator": "fast", "count": 1, "devices": 8},
        {"accelerator": "slow", "count": 2, "devices": 4},
    ],
    "links": {
        "intra_node": {"bandwidth_gbps": 1400, "latency_us": 5},
        "inter_node": {"bandwidth_gbps": 200, "latency_us": 10},
        "cross_cluster": {"bandwidth_gbps": 75, "latency_us": 20},
    },
}
MODEL = {
    "num_layers": 4,
    "hidden_size": 64,
    "ffn_hidden_size": 256,
    "num_attention_heads": 4,
    "vocab_size": 1000,
}
TRAINING = {"global_batch_size": 32, "seq_length": 128}


@pytest.fixture
def cluster_data() -> dict[str, Any]:
    """A cluster of 8 fast and 2 x 4 slow devices, fresh for each test."""
    return yaml.safe_load(yaml.safe_dump(CLUSTER))


@pytest.fixture
def model_data() -> dict[str, Any]:
    return dict(MODEL)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Writes a file below the test's folder: bytes and text as they are, other values as YAML."""

    def write_file(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def experiment_path(write: Callable[[str, Any], Path], cluster_data: dict[str, Any]) -> Path:
    """An experiment with its model and cluster in files of their own."""
    write("models/tiny.yaml", MODEL)
    write("clusters/two-types.yaml", cluster_data)
    experiment = {"model": "../models/tiny.yaml", "cluster": "../clusters/two-types.yaml", "training": TRAINING}
    return write("experiments/small.yaml", experiment)
