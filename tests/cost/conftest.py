"""An example that can be worked out by hand, used throughout the tests of this room.

Two nodes of two devices: `fast` with 10 GB, `slow` with 5 GB; the reserve of 8 % leaves 9.2 and 4.6 GB. Six layers. A
layer has 1e8 parameters at TP 1 (0.2 GB of weights; 1.8 GB of state, 1.2 GB at DP 2) and keeps 0.5 GB for each
micro-batch in flight; embedding and head have half as many parameters, and the head keeps 0.3 GB. TP halves
everything. Links: 1e8 bytes a millisecond inside a node, 1e7 between nodes, 1e6 between clusters, no latency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from poseidon.cost import OuterChoice, outer_choices
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.training import Recompute
from poseidon.profile import LayerKey, Profile, Row, RowKey

DATA: dict[str, dict[str, Any]] = {
    "model": {
        "name": "six-layers",
        "num_layers": 6,
        "hidden_size": 1000,
        "ffn_hidden_size": 4000,
        "num_attention_heads": 10,
        "vocab_size": 50_000,
    },
    "cluster": {
        "name": "two-types",
        "accelerators": {
            "fast": {"peak_tflops": 200.0, "memory_gb": 10.0},
            "slow": {"peak_tflops": 100.0, "memory_gb": 5.0},
        },
        "nodes": [
            {"accelerator": "fast", "count": 1, "devices": 2, "cluster": "c"},
            {"accelerator": "slow", "count": 1, "devices": 2, "cluster": "c"},
        ],
        "links": {
            "intra_node": {"bandwidth_gbps": 800.0},
            "inter_node": {"bandwidth_gbps": 80.0},
            "cross_cluster": {"bandwidth_gbps": 8.0},
        },
    },
    "training": {"global_batch_size": 8, "seq_length": 1000, "micro_batch_sizes": [1]},
    "search": {},
}
FORWARD_MS: Mapping[str, float] = {"fast": 1.0, "slow": 2.0}


@pytest.fixture
def make_experiment() -> Callable[..., Experiment]:
    """The example; keyword arguments (model, cluster, training, search) change single fields of its parts."""

    def make(**changes: dict[str, Any]) -> Experiment:
        parts = {name: fields | changes.get(name, {}) for name, fields in DATA.items()}
        return Experiment.model_validate({"name": "example", **parts})

    return make


@pytest.fixture
def experiment(make_experiment: Callable[..., Experiment]) -> Experiment:
    return make_experiment()


@pytest.fixture
def profile() -> Profile:
    """Round numbers: forward 1 ms (fast) or 2 ms (slow) a layer and sequence, backward twice that; all divided by
    TP."""
    layers: dict[LayerKey, Row] = {}
    embedding: dict[RowKey, Row] = {}
    head: dict[RowKey, Row] = {}
    modes: tuple[tuple[Recompute, float, float], ...] = (("none", 0.5e9, 0.0), ("full", 0.1e9, 0.4e9))
    for name, forward in FORWARD_MS.items():
        for tp in (1, 2):
            for size in (1, 2, 4):
                at = RowKey(name, tp, size)
                share = size / tp
                for mode, kept, recomputed in modes:
                    row = Row(forward * share, 2 * forward * share, 0.2e9 / tp, kept * share, recomputed * share)
                    layers[LayerKey(at, "dense", mode)] = row
                embedding[at] = Row(0.1 * share, 0.2 * share, 0.1e9 / tp, 0.0)
                head[at] = Row(0.5 * share, 1.0 * share, 0.1e9 / tp, 0.3e9 * share)
    return Profile("six-layers", 1000, "bf16", "made up for the tests", layers, embedding, head)


@pytest.fixture
def choice_of(experiment: Experiment) -> Callable[..., OuterChoice]:
    """The outer choice of a name, e.g. ``dp1 tp1 mbs1 1f1b``."""

    def choose(name: str, of: Experiment = experiment) -> OuterChoice:
        return next(choice for choice in outer_choices(of).choices if choice.name == name)

    return choose
