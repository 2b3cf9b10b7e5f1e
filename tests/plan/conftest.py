from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.cost.problem import Kind, LayerCost, Pool, Problem
from poseidon.inputs.experiment import load_experiment
from poseidon.plan.plan import Pipeline, Plan, PlannedStage
from poseidon.planner import find_plan


@pytest.fixture
def make_plan(write_experiment: Callable[..., Path]) -> Callable[..., Plan]:
    """The plan of the example experiment, with changes (see `write_experiment`)."""

    def make(**changes: dict[str, object]) -> Plan:
        plan = find_plan(load_experiment(write_experiment(**changes)))
        assert isinstance(plan, Plan)
        return plan

    return make


@pytest.fixture
def change_stage() -> Callable[..., Plan]:
    """A plan with single fields of one stage replaced."""

    def change(plan: Plan, index: int, **fields: object) -> Plan:
        stages = list(plan.pipeline.stages)
        stage: PlannedStage = replace(stages[index], **fields)
        stages[index] = stage
        pipeline: Pipeline = replace(plan.pipeline, stages=tuple(stages))
        return replace(plan, pipeline=pipeline)

    return change


def random_problem(seed: int) -> Problem:
    """A small problem of any shape: schedules, chunks, mixed layers, idle devices, shared pools, both assignments."""
    rng = random.Random(seed)
    schedule = rng.choice(["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b"])
    chunked = schedule == "interleaved_1f1b"
    shares = not chunked and rng.random() < 0.3
    num_kinds = 2 if shares else rng.randint(1, 2)
    counts = [rng.randint(1, 2) for _ in range(num_kinds)]
    num_stages = rng.randint(1, 3) if shares else max(2, sum(counts))
    counts[0] += 0 if shares else num_stages - sum(counts)
    depth = 2 if schedule == "adaptive_1f1b" else 1
    types = 2 if not chunked and rng.random() < 0.3 else 1
    num_layers = num_stages * (2 if chunked else 1) + rng.randint(0, 3)
    problem = Problem(
        name=f"random {seed}",
        schedule=schedule,
        num_chunks=2 if chunked else 1,
        num_micro_batches=num_stages * rng.randint(1, 2) if chunked else rng.randint(1, 6),
        num_layers=num_layers,
        num_stages=num_stages,
        assignment=rng.choice(["node", "stage"]),
        kinds=(),
        intra_node_ms=_matrix(rng, num_kinds, 0.3),
        inter_node_ms=_matrix(rng, num_kinds, 2.0),
        layer_types=tuple(rng.randrange(2) for _ in range(num_layers)) if types == 2 else (),
        layer_type_names=("a", "b") if types == 2 else ("layer",),
        pools=(Pool("p", 4, 4),) if shares else (),
        allow_idle=shares and rng.random() < 0.5,
        most_depth=depth,
    )
    kinds = [_kind(rng, problem, number, counts[number], shares, types) for number in range(num_kinds)]
    return replace(problem, kinds=tuple(kinds))


def _matrix(rng: random.Random, size: int, most: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(rng.uniform(0, most) for _ in range(size)) for _ in range(size))


def _kind(rng: random.Random, problem: Problem, number: int, count: int, shares: bool, types: int) -> Kind:
    def cost(most: float) -> LayerCost:
        return LayerCost(rng.uniform(0, most), rng.uniform(0, 2 * most), rng.choice([0.0, rng.uniform(0, most)]))

    return Kind(
        name=f"kind {number}",
        stages=4 // (number + 1) if shares else count,
        stages_per_node=2 if not shares and count % 2 == 0 and rng.random() < 0.5 else 1,
        layers=tuple(cost(3) for _ in range(types)),
        first=cost(1),
        last=cost(3),
        max_layers=tuple((rng.randint(1, problem.num_layers),) for _ in problem.places),
        pool="p" if shares else "",
        devices=number + 1 if shares else 1,
    )


@pytest.fixture(params=range(60))
def problem(request: pytest.FixtureRequest) -> Problem:
    """Sixty random small problems."""
    return random_problem(request.param)
