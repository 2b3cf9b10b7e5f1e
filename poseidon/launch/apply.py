"""A call with a plan applied: the plan's flags, as they are exported, in place of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from poseidon.launch.checkpoint import checkpoint_notes
from poseidon.launch.choices import Choices
from poseidon.launch.framework_checks import check_startable
from poseidon.launch.job import Job
from poseidon.launch.launcher import LauncherCall
from poseidon.launch.node_order import ordered_call
from poseidon.launch.plan_flags import removals
from poseidon.launch.read_recompute import RECOMPUTE_FLAGS
from poseidon.launch.rewrite import Change, rewritten
from poseidon.output.export import export_plan
from poseidon.output.export.megatron_settings import Value, as_flags
from poseidon.plan.plan import Plan

MODEL_SETTINGS = ("num_layers", "seq_length")
"""Settings of an export that only repeat what the plan was made for: the user's own flags say them already."""


@dataclass(frozen=True)
class Applied:
    """The call that runs the plan, and how it differs from the user's."""

    call: LauncherCall
    changes: tuple[Change, ...]
    num_kept: int
    notes: tuple[str, ...]


def applied(plan: Plan, file: str, job: Job, call: LauncherCall, choices: Choices) -> Applied:
    """Applies a plan; InputError where the framework, the checkpoint or this node's place do not allow it."""
    framework, pipeline = job.framework, plan.pipeline
    check_startable(plan, job, file)
    hosts = ",".join(choices.hosts) or None
    exported = export_plan(plan, file, framework.export_name, framework.export_version, hosts)
    keeps = job.recomputation.stays and pipeline.recompute == job.recomputation.mode
    left_out = {*MODEL_SETTINGS, *(_setting(flag) for flag in RECOMPUTE_FLAGS if keeps)}
    if not job.arguments.has("--use-mcore-models"):
        left_out.add("use_mcore_models")  # a choice of the script: newer MindSpeed-LLM has no other models
    settings = {name: cast(Value, value) for name, value in exported.settings.items() if name not in left_out}
    sequence_parallel = plan.experiment.training.sequence_parallel
    gone = removals(pipeline, sequence_parallel=sequence_parallel, keeps_recomputation=keeps)
    result = rewritten(job.arguments, as_flags(settings), gone)
    notes = checkpoint_notes(
        job.arguments,
        framework,
        pipeline,
        result.changes,
        Path.cwd(),
        allow_change=choices.allow_checkpoint_change,
    )
    ordered, launcher_changes = ordered_call(call, exported.places, choices.hosts)
    changes = (*launcher_changes, *result.changes)
    return Applied(ordered.with_arguments(result.words), changes, result.num_kept, notes)


def _setting(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
