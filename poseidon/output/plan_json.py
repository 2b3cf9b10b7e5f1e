"""A plan as JSON values (``poseidon.plan/1`` of the contract; docs/plan-format.md has every field)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poseidon.cost.memory import StageMemory
from poseidon.plan.plan import CriticalPathShares, NodeDevices, Pipeline, Plan, PlannedStage, SearchSummary

SCHEMA = "poseidon.plan/1"


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as its file holds it."""
    return {
        "schema": SCHEMA,
        "status": str(plan.status),
        "iteration_time_ms": plan.pipeline.iteration_time_ms,
        "lower_bound_ms": plan.lower_bound_ms,
        "gap": plan.gap,
        **{key: value for key, value in pipeline_to_json(plan.pipeline).items() if key != "iteration_time_ms"},
        "alternatives": [pipeline_to_json(pipeline) for pipeline in plan.alternatives],
        "search": _search_to_json(plan.search),
        "inputs": plan.experiment.resolved(),
    }


def pipeline_to_json(pipeline: Pipeline) -> dict[str, Any]:
    """One configuration."""
    data: dict[str, Any] = {
        "iteration_time_ms": pipeline.iteration_time_ms,
        "outer_choice": pipeline.outer_choice,
        "dp": pipeline.dp,
        "pp": pipeline.pp,
        "micro_batch_size": pipeline.micro_batch_size,
        "num_micro_batches": pipeline.num_micro_batches,
        "schedule": pipeline.schedule,
        "num_chunks": pipeline.num_chunks,
        "recompute": pipeline.recompute,
        "tokens_per_second": pipeline.tokens_per_second,
        "mfu": pipeline.mfu,
        "bubble_fraction": pipeline.bubble_fraction,
        "critical_path": _shares_to_json(pipeline.critical_path),
        "stages": [_stage_to_json(pipeline, stage) for stage in pipeline.stages],
        "idle": [_devices_to_json(part) for part in pipeline.idle],
    }
    if pipeline.depths:
        data["depths"] = list(pipeline.depths)
    return data


def _stage_to_json(pipeline: Pipeline, stage: PlannedStage) -> dict[str, Any]:
    memory = stage.memory
    own = {"dp": stage.dp, "micro_batch_size": pipeline.micro_batch_of(stage)} if pipeline.dp_differs else {}
    return {
        "kind": stage.kind,
        "accelerator": stage.accelerator,
        **own,
        "tp": stage.tp,
        "layers": _by_chunk(stage.layers),
        "layer_range": _by_chunk([list(part) for part in stage.layer_ranges]),
        "nodes": list(stage.nodes),
        "ranks": list(stage.ranks),
        "devices": [list(part.devices) for part in stage.devices],
        "forward_ms": _by_chunk(stage.forward_ms),
        "backward_ms": _by_chunk(stage.backward_ms),
        "send_forward_ms": stage.send_forward_ms,
        "send_backward_ms": stage.send_backward_ms,
        "all_reduce_ms": stage.all_reduce_ms,
        "bubble_ms": stage.bubble_ms,
        "memory_bytes": round(memory.total_bytes),
        "memory_limit_bytes": round(memory.limit_bytes),
        "in_flight": _whole(memory.in_flight),
        "memory": _memory_to_json(memory),
    }


def _by_chunk(values: Sequence[Any]) -> Any:
    """A single value for one chunk, a list for several (contract, "Plan")."""
    return values[0] if len(values) == 1 else list(values)


def _whole(value: float) -> float:
    """Whole numbers without a decimal point."""
    return int(value) if float(value).is_integer() else value


def _memory_to_json(memory: StageMemory) -> dict[str, float]:
    names = (
        "weights_bytes",
        "gradients_bytes",
        "optimizer_bytes",
        "activations_bytes",
        "recomputed_bytes",
        "reserve_bytes",
    )
    return {name: _whole(getattr(memory, name)) for name in names}


def _devices_to_json(part: NodeDevices) -> dict[str, Any]:
    return {"node": part.node, "devices": list(part.devices)}


def _shares_to_json(shares: CriticalPathShares) -> dict[str, Any]:
    return {"stages": list(shares.stages), "transfers": shares.transfers, "all_reduce": shares.all_reduce}


def _search_to_json(search: SearchSummary) -> dict[str, Any]:
    return {
        "policy": search.policy,
        "termination": str(search.termination),
        "seconds": search.seconds,
        "outer_choices": search.outer_choices,
        "nodes": search.nodes,
        "simulations": search.simulations,
        "pruned": dict(search.pruned),
        "workers": search.workers,
        "backend": search.backend,
        "warnings": list(search.warnings),
        "curve": [list(point) for point in search.curve],
    }
