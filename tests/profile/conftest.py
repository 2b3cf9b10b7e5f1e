"""A tiny model that can be worked out by hand, and a device whose rates are round numbers.

Model: hidden 8, 2 heads of 4, gated MLP of 16, vocabulary 32, rmsnorm. A layer has 4 x 64 + 3 x 128 + 2 x 8 = 656
parameters. One sequence of 4 tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.links import Link
from poseidon.inputs.model import Model
from poseidon.profile.analytic import Device
from poseidon.profile.calibration import Calibration
from poseidon.profile.timing import device_rates

TINY: dict[str, Any] = {
    "name": "tiny",
    "num_layers": 4,
    "hidden_size": 8,
    "ffn_hidden_size": 16,
    "num_attention_heads": 2,
    "vocab_size": 32,
}
GPT_22B: dict[str, Any] = {
    "name": "gpt-22b",
    "num_layers": 48,
    "hidden_size": 6144,
    "ffn_hidden_size": 24_576,
    "num_attention_heads": 64,
    "vocab_size": 51_200,
    "gated_mlp": False,
    "norm": "layernorm",
    "max_position_embeddings": 2048,
    "tied_embeddings": True,
}
ROUND = Calibration(
    compute_efficiency=1.0,
    training_share=1.0,
    half_rate_side=0.0,
    attention_share=1.0,
    forward_overhead_us=0.0,
    collective_efficiency=1.0,
    backward_exposed_share=1.0,
)
"""Nothing is lost: every time is FLOPs / peak or bytes / bandwidth."""


@pytest.fixture
def tiny_model() -> Model:
    return Model.model_validate(TINY)


@pytest.fixture
def gpt_22b() -> Model:
    return Model.model_validate(GPT_22B)


@pytest.fixture
def round_device() -> Device:
    """1e6 FLOP/ms, memory so fast that it never counts, a link of 1e3 bytes/ms with 0.5 ms of latency."""
    accelerator = Accelerator(peak_tflops=0.001, memory_gb=1.0, memory_bandwidth_gb_per_s=1e6, memory_efficiency=1.0)
    return Device(device_rates(accelerator, ROUND), Link(bandwidth_gbps=0.008, latency_us=500.0), 2, ROUND)


@pytest.fixture
def make_experiment() -> Callable[..., Experiment]:
    """An experiment on two types with two devices a node; keyword arguments change model, cluster, training, search."""

    def make(**changes: dict[str, Any]) -> Experiment:
        cluster = {
            "name": "two-types",
            "accelerators": {
                "fast": {"peak_tflops": 200.0, "memory_gb": 32.0},
                "slow": {"peak_tflops": 100.0, "memory_gb": 16.0},
            },
            "nodes": [
                {"accelerator": "fast", "count": 1, "devices": 2},
                {"accelerator": "slow", "count": 1, "devices": 2},
            ],
            "links": {
                "intra_node": {"bandwidth_gbps": 800.0, "latency_us": 5.0},
                "inter_node": {"bandwidth_gbps": 80.0, "latency_us": 10.0},
            },
        }
        training = {"global_batch_size": 8, "seq_length": 4, "micro_batch_sizes": [1, 2]}
        return Experiment.model_validate(
            {
                "name": "tiny",
                "model": TINY | changes.get("model", {}),
                "cluster": cluster | changes.get("cluster", {}),
                "training": training | changes.get("training", {}),
                "search": changes.get("search", {}),
            }
        )

    return make
