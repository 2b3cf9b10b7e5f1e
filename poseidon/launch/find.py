"""The plan for a call: given, kept from before, or searched now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import COMMAND_LINE, Experiment
from poseidon.inputs.experiment_file import resolved_cluster
from poseidon.inputs.loading import Loading
from poseidon.launch.cache import cached_plan, is_repeatable, keep_plan
from poseidon.launch.choices import Choices
from poseidon.launch.cluster_shape import check_shape, node_groups
from poseidon.launch.discover import discovered_cluster
from poseidon.launch.experiment import KnownCluster, experiment_of
from poseidon.launch.given_plan import check_given
from poseidon.launch.job import Job, read_job
from poseidon.launch.launcher import LauncherCall
from poseidon.launch.measured import measured_profile
from poseidon.output.plan_file import read_plan
from poseidon.plan.plan import NoPlan, Plan
from poseidon.planner import find_plan
from poseidon.search.result import TerminationReason
from poseidon.search.watch import Progress

Origin = Literal["file", "cache", "search"]


@dataclass(frozen=True)
class Found:
    """The job, and the plan for it or why there is none."""

    job: Job
    plan: Plan | NoPlan
    file: str
    """What errors call the plan."""
    origin: Origin
    notes: tuple[str, ...]


def plan_for(call: LauncherCall, choices: Choices, report: Callable[[Progress], None] | None) -> Found:
    """Reads the job and finds its plan; InputError where a file or a flag can't be used."""
    given = None if choices.plan is None else read_plan(choices.plan)
    known = _cluster(call, choices, given)
    num_devices = sum(group.devices for group in node_groups(known.cluster))
    job = read_job(call, num_devices, choices)
    if given is not None and choices.plan is not None:
        check_given(given, job, choices.plan, known.cluster if choices.cluster else None)
        return Found(job, given, choices.plan, "file", known.notes)
    profile = measured_profile(job, known.cluster, call, choices) if choices.measure else choices.profile
    experiment = experiment_of(job, known, choices, profile)
    plan, origin = _plan(experiment, choices, report)
    if plan.search.termination is TerminationReason.INTERRUPTED:
        raise KeyboardInterrupt  # who ends the search does not want the training
    if isinstance(plan, Plan):
        _check_same_everywhere(plan, call)
    return Found(job, plan, "the plan", origin, known.notes)


def _cluster(call: LauncherCall, choices: Choices, given: Plan | None) -> KnownCluster:
    """From its file, from the plan that is given, or from the machines themselves."""
    if choices.cluster is not None:
        loading = Loading()
        cluster = resolved_cluster({"cluster": choices.cluster}, COMMAND_LINE, "cluster", loading)
        loading.finish()
        assert cluster is not None
        known, where = KnownCluster(cluster, loading.files), choices.cluster
    elif given is not None:
        known, where = KnownCluster(given.experiment.cluster, {}), str(choices.plan)
    else:
        known, where = discovered_cluster(call, choices), "the discovered cluster"
    check_shape(known.cluster, call, where)
    if choices.hosts and len(choices.hosts) != call.num_nodes:
        message = f"{len(choices.hosts)} hosts are given; there are {call.num_nodes} nodes"
        raise InputError(Mistake("--hosts", "", message))
    return known


def _plan(
    experiment: Experiment, choices: Choices, report: Callable[[Progress], None] | None
) -> tuple[Plan | NoPlan, Origin]:
    if choices.use_cache and (kept := cached_plan(experiment)) is not None:
        return kept, "cache"
    plan = find_plan(experiment, report)
    if choices.use_cache and isinstance(plan, Plan):
        keep_plan(plan)
    return plan, "search"


def _check_same_everywhere(plan: Plan, call: LauncherCall) -> None:
    """Every node plans for itself, so all must come to the same plan: not to what a time limit left."""
    if call.num_nodes > 1 and not is_repeatable(plan):
        message = (
            f"ended the search ({plan.search.termination}), so that other nodes may come to another plan; search once, "
            "with --dry-run --out DIR, and give every node --plan DIR/plan.json"
        )
        raise InputError(Mistake("--time-limit", "", message))
