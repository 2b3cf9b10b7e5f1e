"""The configurations of the paper's accuracy study, timed three ways: kernel, plain-Python twin, independent replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from poseidon.cost.costs import costs
from poseidon.cost.outer import OuterChoice
from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.experiment import Experiment
from poseidon.paper.deployments import deployments
from poseidon.paper.request import Request
from poseidon.paper.study import Row, Study
from poseidon.plan.check_space import Space as PlainSpace
from poseidon.plan.check_trial import split_times
from poseidon.plan.replay import replayed_time_ms
from poseidon.search.evaluate import configuration_times, order_graph
from poseidon.search.result import Solution
from poseidon.search.space import Space, space_of
from poseidon.search.warmup import random_configurations
from poseidon.simulate.reference import longest_path
from poseidon.sweep.schema import Column

EXPERIMENT = "accuracy-study"
SCHEDULES = ("1f1b", "interleaved_1f1b", "eager_1f1b")
NUM_DEPLOYMENTS, NUM_CONFIGURATIONS = 20, 100
"""Deployments, and configurations of each schedule on each of them (paper, section 6.3.1)."""
MOST_DP, MOST_PP, MOST_TP = 4, 16, 8
"""The paper's ranges."""
SEED = 631
KERNEL_CALLS = 3
"""Calls of the kernel of which the fastest counts: one takes some microseconds."""

COLUMNS = (
    Column("deployment", pa.int32(), "number of the deployment, 0-based"),
    Column("nodes", pa.string(), "its nodes by type"),
    Column("num_devices", pa.int32(), "its devices"),
    Column("schedule", pa.string(), "pipeline schedule"),
    Column("dp", pa.int32(), "data-parallel degree"),
    Column("pp", pa.int32(), "pipeline stages"),
    Column("tp", pa.int32(), "tensor-parallel degree"),
    Column("num_micro_batches", pa.int32(), "micro-batches of an iteration"),
    Column("num_operations", pa.int32(), "forwards and backwards of a pipeline in one iteration"),
    Column("kernel_ms", pa.float64(), "iteration time by the compiled kernel"),
    Column("twin_ms", pa.float64(), "iteration time by its plain-Python twin, from the same weights"),
    Column("replay_ms", pa.float64(), "iteration time by the replay of `poseidon verify`, from times of its own"),
    Column("kernel_us", pa.float64(), "CPU microseconds of a call of the kernel, the fastest of 3"),
    Column("twin_us", pa.float64(), "CPU microseconds of a call of the twin"),
    Column("replay_us", pa.float64(), "CPU microseconds of a replay"),
)


def rows(
    request: Request, num_deployments: int = NUM_DEPLOYMENTS, num_configurations: int = NUM_CONFIGURATIONS
) -> Iterator[Row]:
    """A row for each configuration.

    Deployments are random parts of the experiment's cluster with two types of nodes or more, on which every schedule
    has a configuration within memory and the ranges. Raises InputError where there are too few of them.
    """
    base = request.experiment(EXPERIMENT)
    found = 0
    for cluster in deployments(base.cluster, SEED):
        spaces = {schedule: _spaces(base, cluster, schedule) for schedule in SCHEDULES}
        if not all(spaces.values()):
            continue
        request.tell(f"deployment {found + 1} of {num_deployments}, {cluster.name}: kernel, twin and replay")
        for schedule, choices in spaces.items():
            common = {"deployment": found, "nodes": cluster.name, "num_devices": cluster.num_devices}
            for row in _configurations(choices, num_configurations, SEED + found):
                yield {**common, "schedule": schedule, **row}
        found += 1
        if found == num_deployments:
            return
    message = (
        f"only {found} parts of the cluster have room for the model under every schedule; {num_deployments} needed"
    )
    raise InputError(Mistake(next(iter(base.files), EXPERIMENT), "cluster", message))


def _spaces(base: Experiment, cluster: Cluster, schedule: str) -> list[tuple[OuterChoice, Space]]:
    """The outer choices of a deployment in the ranges that some configuration fits."""
    training = base.training.model_copy(update={"schedules": (schedule,)})
    experiment = base.model_copy(update={"cluster": cluster, "training": training})
    try:
        pairs = list(costs(experiment))
    except InputError:  # no outer choice at all
        return []
    spaces = [(choice, space_of(problem)) for choice, problem in pairs if _is_in_range(choice)]
    return [(choice, space) for choice, space in spaces if not space.is_empty]


def _is_in_range(choice: OuterChoice) -> bool:
    return choice.dp <= MOST_DP and choice.num_stages <= MOST_PP and choice.tp <= MOST_TP


def _configurations(choices: Sequence[tuple[OuterChoice, Space]], count: int, seed: int) -> Iterator[Row]:
    """Random configurations of the outer choices, each timed."""
    for index, samples in random_configurations([space for _, space in choices], count, seed):
        choice, space = choices[index]
        plain = PlainSpace(space.problem)
        common = {
            "dp": choice.dp,
            "pp": choice.num_stages,
            "tp": choice.tp,
            "num_micro_batches": choice.num_micro_batches,
        }
        for path, layers in samples:
            yield common | _timed(space.solution(path, layers, float("inf")), plain)


def _timed(solution: Solution, plain: PlainSpace) -> Row:
    """One configuration, three ways."""
    problem = solution.problem
    graph = order_graph(problem)
    weights = graph.weights(configuration_times(problem, solution.stages))
    lists = [array.tolist() for array in weights]
    kinds = tuple(stage.kind for stage in solution.stages)
    chunks = [stage.layers for stage in solution.stages]
    plain_times = split_times(plain, kinds, chunks)
    kernel_ms, kernel_us = min((_clocked(lambda: graph.kernel.time(*weights)) for _ in range(KERNEL_CALLS)), key=_cost)
    twin_ms, twin_us = _clocked(lambda: longest_path(graph.listing, lists[0], lists[1], lists[2])[0])
    replay_ms, replay_us = _clocked(lambda: replayed_time_ms(graph.order, plain_times))
    return {
        "num_operations": len(graph.operations.stage),
        "kernel_ms": kernel_ms,
        "twin_ms": twin_ms,
        "replay_ms": replay_ms,
        "kernel_us": kernel_us,
        "twin_us": twin_us,
        "replay_us": replay_us,
    }


def _clocked(call: Callable[[], float]) -> tuple[float, float]:
    """What a call returns, and its microseconds of CPU time, which other programs of a busy machine don't add to."""
    started = time.thread_time_ns()
    value = float(call())
    return value, (time.thread_time_ns() - started) / 1e3


def _cost(timed: tuple[float, float]) -> float:
    return timed[1]


STUDY = Study(
    "kernel-twin",
    "The simulator's kernel beside its twin and an independent replay",
    COLUMNS,
    rows,
    experiments=(EXPERIMENT,),
)
