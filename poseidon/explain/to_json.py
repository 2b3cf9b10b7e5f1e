"""Explanations and comparisons for programs (docs/explain.md)."""

from __future__ import annotations

import math
from typing import Any

from poseidon.explain.difference import Comparison, Differs
from poseidon.explain.outer_choices import Survey, Weighed, refusal_reasons
from poseidon.output.plan_json import pipeline_to_json
from poseidon.plan import Plan
from poseidon.plan.time_breakdown import TimeBreakdown


def explanation_to_json(plan: Plan, time: TimeBreakdown, survey: Survey) -> dict[str, Any]:
    """The explanation of one plan."""
    pipeline = plan.pipeline
    return {
        "outer_choice": pipeline.outer_choice,
        "status": str(plan.status),
        "iteration_time_ms": pipeline.iteration_time_ms,
        "lower_bound_ms": plan.lower_bound_ms,
        "gap": plan.gap,
        "time": _time(time),
        "stages": [
            {
                "accelerator": stage.accelerator,
                "layers": list(stage.layers),
                "compute_ms": pipeline.num_micro_batches * (sum(stage.forward_ms) + sum(stage.backward_ms)),
                "critical_path": pipeline.critical_path.stages[index],
                "bubble_ms": stage.bubble_ms,
                "memory_bytes": round(stage.memory.total_bytes),
                "memory_limit_bytes": round(stage.memory.limit_bytes),
            }
            for index, stage in enumerate(pipeline.stages)
        ],
        "search": {"seconds": survey.seconds, "complete": survey.is_complete},
        "outer_choices": [_weighed(item) for item in survey.weighed],
        "refused": [{"reason": reason, "count": count} for reason, count in refusal_reasons(survey.refusals)],
    }


def _time(time: TimeBreakdown) -> dict[str, Any]:
    compute_ms, transfers_ms, bubble_ms, all_reduce_ms = time.parts
    return {
        "busiest_stage": time.busiest,
        "compute_ms": compute_ms,
        "transfers_ms": transfers_ms,
        "bubble_ms": bubble_ms,
        "all_reduce_ms": all_reduce_ms,
    }


def _weighed(item: Weighed) -> dict[str, Any]:
    """Numbers that do not exist are null."""
    miss = item.shortfall
    return {
        "name": item.name,
        "pp": item.num_stages,
        "lower_bound_ms": item.bound_ms if math.isfinite(item.bound_ms) else None,
        "iteration_time_ms": None if item.pipeline is None else item.pipeline.iteration_time_ms,
        "time": None if item.time is None else _time(item.time),
        "short_of_memory": None
        if miss is None
        else {
            "stage": miss.stage,
            "accelerator": miss.accelerator,
            "layers_that_fit": miss.fitting_layers,
            "needed_bytes": round(miss.needed_bytes),
            "limit_bytes": round(miss.limit_bytes),
        },
    }


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Two plans; `difference` is what the other one takes longer, in parts that add up to it."""
    compute_ms, transfers_ms, bubble_ms, all_reduce_ms = comparison.parts_ms
    return {
        "this": {**pipeline_to_json(comparison.this), "time": _time(comparison.this_time)},
        "other": {**pipeline_to_json(comparison.other), "time": _time(comparison.other_time)},
        "difference": {
            "iteration_time_ms": comparison.difference_ms,
            "compute_ms": compute_ms,
            "transfers_ms": transfers_ms,
            "bubble_ms": bubble_ms,
            "all_reduce_ms": all_reduce_ms,
            "mostly": comparison.main_part,
        },
        "different_inputs": [_differs(item) for item in comparison.inputs],
        "different_settings": [_differs(item) for item in comparison.settings],
    }


def _differs(item: Differs) -> dict[str, str]:
    return {"setting": item.name, "this": item.this, "other": item.other}
