"""A plan that the user gives: whether it is for this command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.model import Model
from poseidon.inputs.validation import validate
from poseidon.launch.cluster_shape import node_groups
from poseidon.launch.job import Job
from poseidon.plan.plan import Plan

SAME_TRAINING = (
    "global_batch_size",
    "seq_length",
    "precision",
    "gradient_precision",
    "distributed_optimizer",
    "sequence_parallel",
)
"""What decides on whether a plan fits and runs; kernels that are fused or not only change its times."""


def check_given(plan: Plan, job: Job, file: str, cluster: Cluster | None) -> None:
    """Refuses a plan for another model, batch, sequence, or cluster (where one is given); InputError with all of it."""
    if mistakes := [Mistake(file, field, message) for field, message in _differences(plan, job, cluster)]:
        raise InputError(mistakes)


def _differences(plan: Plan, job: Job, cluster: Cluster | None) -> Iterator[tuple[str, str]]:
    experiment = plan.experiment
    model = validate(Model, dict(job.model), "the command's flags")
    yield from _compared("inputs.model", experiment.model.model_dump(), model.model_dump() | {"name": ""}, ("name",))
    wanted = {key: job.training[key] for key in SAME_TRAINING}
    yield from _compared("inputs.training", experiment.training.model_dump(), wanted, ())
    if cluster is not None:
        of_plan, here = (_shape(one) for one in (experiment.cluster, cluster))
        if of_plan != here:
            yield "inputs.cluster", f"has the nodes {_listed(of_plan)}; the cluster here has {_listed(here)}"


def _compared(
    where: str, of_plan: Mapping[str, Any], wanted: Mapping[str, Any], ignored: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for key, value in wanted.items():
        if key not in ignored and of_plan[key] != value:
            yield f"{where}.{key}", f"is {of_plan[key]}, but {value} in the command: the plan is for another training"


def _shape(cluster: Cluster) -> tuple[tuple[int, float, float], ...]:
    """Devices, speed and memory of each node: names may differ."""
    groups = node_groups(cluster)
    types = [cluster.accelerator_of(group) for group in groups]
    return tuple((g.devices, t.peak_tflops, t.memory_gb) for g, t in zip(groups, types, strict=True))


def _listed(shape: tuple[tuple[int, float, float], ...]) -> str:
    nodes = [f"{devices} x {tflops:g} TFLOPS {memory:g} GB" for devices, tflops, memory in shape[:8]]
    return ", ".join(nodes) + (", ..." if len(shape) > 8 else "")
