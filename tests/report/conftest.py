from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment, experiment_from_resolved, load_experiment
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan
from poseidon.report import Simulated, simulated_stages
from poseidon.schedule import Order, find_schedule
from poseidon.simulate import StagesFile, StageTimes, stage_times
from poseidon.simulate.timeline import Transfers

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "configs" / "experiments" / "quickstart.yaml"

PIPELINE_OF_36 = {
    "model": {
        "name": "seventy-two-layers",
        "num_layers": 72,
        "hidden_size": 1024,
        "ffn_hidden_size": 4096,
        "num_attention_heads": 8,
        "vocab_size": 32_000,
    },
    "cluster": {
        "name": "thirty-six-nodes",
        "accelerators": {"fast": {"peak_tflops": 200, "memory_gb": 80}, "slow": {"peak_tflops": 100, "memory_gb": 64}},
        "nodes": [
            {"accelerator": "fast", "count": 18, "devices": 1},
            {"accelerator": "slow", "count": 18, "devices": 1},
        ],
        "links": {
            "intra_node": {"bandwidth_gbps": 800},
            "inter_node": {"bandwidth_gbps": 100, "latency_us": 10},
        },
    },
    "training": {"global_batch_size": 512, "seq_length": 1024, "micro_batch_sizes": [1]},
    "search": {"fixed_pp": 36, "gap": 0.05, "time_limit_s": 60},
}
"""512 micro-batches over 36 stages: 36,864 operations."""


def planned(experiment: Experiment) -> Plan:
    plan = find_plan(experiment)
    assert isinstance(plan, Plan)
    return plan


@pytest.fixture
def make_plan(write_experiment: Callable[..., Path]) -> Callable[..., Plan]:
    """The plan of the example experiment, with changes (see `write_experiment`)."""
    return lambda **changes: planned(load_experiment(write_experiment(**changes)))


@pytest.fixture(scope="session")
def quickstart() -> Plan:
    return planned(load_experiment(QUICKSTART, search={"top": 5}))


@pytest.fixture(scope="session")
def interleaved(quickstart: Plan) -> Plan:
    """The quickstart's experiment with two chunks a stage."""
    data = quickstart.experiment.resolved()
    data["training"] |= {"schedules": ["interleaved_1f1b"], "num_chunks": [2], "recompute": "full"}
    data["search"] |= {"top": 1, "gap": 0.2, "fixed_dp": 4, "fixed_tp": 1}
    return planned(experiment_from_resolved(data))


@pytest.fixture(scope="session")
def long_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("long") / "long.yaml"
    path.write_text(yaml.safe_dump(PIPELINE_OF_36))
    return planned(load_experiment(path))


def random_order(rng: random.Random) -> Order:
    """An order of any schedule, split backwards and Vs included."""
    name = rng.choice(
        ["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b", "zb_h1", "zb_h2", "zbv", "dualpipev"]
    )
    num_stages = rng.randint(1, 5)
    num_chunks = {"interleaved_1f1b": rng.randint(1, 3), "zbv": 2, "dualpipev": 2}.get(name, 1)
    rounds = num_stages * rng.randint(2, 3)
    num_micro_batches = rounds if num_chunks > 1 else rng.randint(1, 9)
    depths = [rng.randint(1, 3) for _ in range(num_stages - 1)] if name == "adaptive_1f1b" else ()
    return find_schedule(name).order(num_stages, num_micro_batches, num_chunks, depths=depths)


def random_times(rng: random.Random, order: Order) -> StageTimes:
    """Stages differ; some transfers and all-reduces take nothing."""

    def chunks() -> list[list[float]]:
        return [[rng.uniform(0.5, 4) for _ in range(order.num_chunks)] for _ in range(order.num_stages)]

    def stages() -> list[float]:
        return [rng.choice([0.0, rng.uniform(0, 3)]) for _ in range(order.num_stages)]

    return stage_times(
        chunks(),
        chunks(),
        input_ms=chunks(),
        weight_ms=chunks(),
        send_forward_ms=stages(),
        send_backward_ms=stages(),
        all_reduce_ms=stages(),
    )


def random_simulated(seed: int, transfers: Transfers) -> Simulated:
    """Random times under a random order."""
    rng = random.Random(seed)
    while True:
        order = random_order(rng)
        stages = StagesFile("any", order, random_times(rng, order), transfers)
        try:
            return simulated_stages(stages, "random.json", "random")
        except InputError:  # stages that never meet: blocking transfers refuse some orders
            assert transfers == "blocking"


@pytest.fixture(params=range(40))
def overlapped_iteration(request: pytest.FixtureRequest) -> Simulated:
    return random_simulated(request.param, "overlapped")


@pytest.fixture(params=range(20))
def blocking_iteration(request: pytest.FixtureRequest) -> Simulated:
    return random_simulated(request.param, "blocking")


@pytest.fixture(params=[(seed, transfers) for seed in range(20) for transfers in ("overlapped", "blocking")], ids=str)
def random_iteration(request: pytest.FixtureRequest) -> Simulated:
    return random_simulated(*request.param)
