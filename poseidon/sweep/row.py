"""A finished run as a row of the table."""

from __future__ import annotations

import json
from typing import Any

from poseidon.inputs.experiment import Experiment
from poseidon.plan.plan import NoPlan, Pipeline, Plan, PlannedStage, SearchSummary
from poseidon.sweep.executor import Finished
from poseidon.sweep.host import poseidon_version
from poseidon.sweep.outcome import Trouble

Row = dict[str, Any]
"""Values by column (`schema.COLUMNS`); a column that is left out is null."""


def row_of(finished: Finished, backend: str) -> Row:
    """The row of a finished run."""
    run, outcome = finished.run, finished.outcome
    row = {
        "run_id": run.identity,
        "run": run.number,
        "name": run.name,
        "status": str(outcome.status),
        "reason": outcome.reason,
        "backend": backend,
        "attempts": finished.attempts,
        "started_at": outcome.started_at,
        "run_s": outcome.seconds,
        "host": outcome.host.name,
        "processor": outcome.host.processor,
        "num_cpus": outcome.host.num_cpus,
        "load": outcome.host.load,
        "python_version": outcome.host.python_version,
        "poseidon_version": poseidon_version(),
    }
    if isinstance(run.content, Experiment):
        row |= _inputs(run.content)
    match outcome.answer:
        case Plan() as plan:
            row |= _search(plan.search) | _pipeline(plan.pipeline)
            row |= {"lower_bound_ms": plan.lower_bound_ms, "gap": plan.gap}
        case NoPlan(search=search):
            row |= _search(search)
        case Trouble():
            pass
    return row


def _inputs(experiment: Experiment) -> Row:
    return {
        "model": experiment.model.name,
        "cluster": experiment.cluster.name,
        "num_devices": experiment.cluster.num_devices,
        "global_batch_size": experiment.training.global_batch_size,
        "seq_length": experiment.training.seq_length,
        "policy": experiment.search.policy,
        "experiment": json.dumps(experiment.resolved(), ensure_ascii=False, allow_nan=False),
        "files": [{"path": path, "sha256": digest} for path, digest in sorted(experiment.files.items())],
    }


def _search(search: SearchSummary) -> Row:
    return {
        "termination": str(search.termination),
        "outer_choices": search.outer_choices,
        "search_nodes": search.nodes,
        "simulations": search.simulations,
        "search_s": search.seconds,
        "warnings": list(search.warnings),
    }


def _pipeline(pipeline: Pipeline) -> Row:
    names = ("iteration_time_ms", "tokens_per_second", "mfu", "bubble_fraction", "dp", "pp", "tp", "micro_batch_size")
    more = ("num_micro_batches", "schedule", "num_chunks", "recompute")
    return {
        **{name: getattr(pipeline, name) for name in (*names, *more)},
        "num_idle_devices": sum(len(part.devices) for part in pipeline.idle),
        "stages": [_stage(stage) for stage in pipeline.stages],
    }


def _stage(stage: PlannedStage) -> Row:
    copied = ("kind", "accelerator", "tp", "send_forward_ms", "send_backward_ms", "all_reduce_ms", "bubble_ms")
    lists = ("layers", "nodes", "forward_ms", "backward_ms")
    return {
        **{name: getattr(stage, name) for name in copied},
        **{name: list(getattr(stage, name)) for name in lists},
        "memory_bytes": round(stage.memory.total_bytes),
        "memory_limit_bytes": round(stage.memory.limit_bytes),
    }
