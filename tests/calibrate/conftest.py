"""A file of measurements whose times come from a calibration that the tests know: eight runs on up to 16 devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.calibrate.measurement import Measurement
from poseidon.calibrate.runs_file import read_measurements
from poseidon.profile.calibration import Calibration

TRUE = Calibration(training_share=0.62, collective_efficiency=0.5, half_rate_side=300.0)
FILE: dict[str, Any] = {
    "accelerator": {"peak_tflops": 300, "memory_gb": 80, "memory_bandwidth_gb_per_s": 2000},
    "systems": {
        "cluster": {
            "devices_per_node": 8,
            "links": {
                "intra_node": {"bandwidth_gbps": 2400, "latency_us": 5},
                "inter_node": {"bandwidth_gbps": 200, "latency_us": 10},
            },
        }
    },
    "training": {"seq_length": 2048},
    "models": {
        "small": {
            "num_layers": 8,
            "hidden_size": 2048,
            "ffn_hidden_size": 8192,
            "num_attention_heads": 16,
            "vocab_size": 32_000,
        }
    },
}


def runs() -> list[dict[str, Any]]:
    return [
        {
            "name": f"tp{tp} pp{pp} b{size}",
            "model": "small",
            "dp": 2,
            "tp": tp,
            "pp": pp,
            "micro_batch_size": size,
            "global_batch_size": 16,
            "iteration_ms": 1.0,
        }
        for tp, (pp, size) in itertools.product((1, 2, 4, 8), ((1, 1), (2, 4)))
    ]


@pytest.fixture
def write_runs(tmp_path: Path) -> Callable[..., Path]:
    """Writes the file; keyword arguments replace its keys, `rows` its runs."""

    def write(rows: list[dict[str, Any]] | str | None = None, **changes: Any) -> Path:
        path = tmp_path / "runs.yaml"
        data = {**FILE, "runs": runs() if rows is None else rows, **changes}
        path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}))
        return path

    return write


@pytest.fixture
def synthetic(write_runs: Callable[..., Path]) -> tuple[Measurement, ...]:
    """The runs with the times that `TRUE` predicts; none is held out."""
    found = read_measurements(write_runs()).runs
    return tuple(replace(item, measured_ms=item.predicted_ms(TRUE), held_out=False) for item in found)
