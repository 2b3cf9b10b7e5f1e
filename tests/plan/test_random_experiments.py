"""Plans of random experiments, from any corner of the space, pass every check."""

from __future__ import annotations

import random
from typing import Any

import pytest

from poseidon.inputs.experiment import Experiment
from poseidon.inputs.validation import validate
from poseidon.plan import Plan, Verdict, check_plan
from poseidon.plan.check_optimum import Effort
from poseidon.planner import find_plan

EFFORT = Effort(everything_steps=5_000, everything_operations=100_000, steps=50_000, operations=500_000)


def random_experiment(seed: int) -> Experiment:
    """Up to three accelerators, nodes of any size, dense or mixed layers, all schedules and settings of the space."""
    rng = random.Random(seed)
    types = [f"type {number}" for number in range(rng.randint(1, 3))]
    experts = {
        "num_experts": 4,
        "experts_per_token": 2,
        "expert_ffn_hidden_size": 512,
        "first_dense_layers": rng.randint(0, 2),
    }
    schedules = rng.choice([["1f1b"], ["eager_1f1b", "gpipe"], ["adaptive_1f1b"], ["1f1b", "interleaved_1f1b"]])
    data: dict[str, Any] = {
        "name": f"random {seed}",
        "model": {
            "name": "small",
            "num_layers": 16,
            "hidden_size": 512,
            "ffn_hidden_size": 2048,
            "num_attention_heads": 8,
            "vocab_size": rng.choice([1000, 50_000]),
            "tied_embeddings": rng.random() < 0.5,
            "moe": experts if rng.random() < 0.3 else None,
        },
        "cluster": {
            "name": "small",
            "accelerators": {
                name: {"peak_tflops": rng.choice([50.0, 100.0, 200.0]), "memory_gb": rng.choice([2.0, 4.0, 16.0])}
                for name in types
            },
            "nodes": [
                {"accelerator": rng.choice(types), "count": rng.randint(1, 2), "devices": rng.choice([1, 2, 4])}
                for _ in range(rng.randint(1, 2))
            ],
            "links": {
                "intra_node": {"bandwidth_gbps": 400.0, "latency_us": 5.0},
                "inter_node": {
                    "bandwidth_gbps": rng.choice([10.0, 100.0]),
                    "shared_by": rng.choice(["node", "device"]),
                },
            },
        },
        "training": {
            "global_batch_size": rng.choice([8, 12, 16]),
            "seq_length": 512,
            "micro_batch_sizes": [1, 2],
            "schedules": schedules,
            "recompute": rng.choice(["none", "selective", "full"]),
            "sequence_parallel": rng.random() < 0.5,
            "distributed_optimizer": rng.random() < 0.5,
        },
        "search": {
            "assignment": rng.choice(["node", "stage"]),
            "tp": rng.choice(["uniform", "per-type", "per-stage"]),
            "allow_idle": rng.random() < 0.4,
            "top": rng.choice([1, 3]),
        },
    }
    return validate(Experiment, data, data["name"])


@pytest.mark.parametrize("seed", range(16))
def test_the_plan_is_right(seed: int) -> None:
    experiment = random_experiment(seed)
    plan = find_plan(experiment)
    assert isinstance(plan, Plan)
    wrong = [finding for finding in check_plan(plan, EFFORT) if finding.verdict is Verdict.WRONG]
    assert wrong == []
