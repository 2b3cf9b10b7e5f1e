"""A report as JSON values: what ``poseidon report --json`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from poseidon.report.breakdown import Breakdown
from poseidon.report.sensitivity import Answer, Sensitivity
from poseidon.report.simulated import Simulated

SCHEMA = "poseidon.report/1"


def summary_to_json(
    simulated: Simulated, breakdown: Breakdown, sensitivity: Sensitivity | str | None, files: Sequence[Path]
) -> dict[str, Any]:
    """Breakdown (ms), sensitivity (null: not asked for) and the files written."""
    iteration_ms, path = simulated.iteration_time_ms, breakdown.path
    return {
        "schema": SCHEMA,
        "title": simulated.title,
        "shape": simulated.shape,
        "iteration_time_ms": iteration_ms,
        "num_operations": simulated.timeline.order.num_operations,
        "critical_path": {
            "compute_ms": sum(path.stages) * iteration_ms,
            "exposed_transfer_ms": path.transfers * iteration_ms,
            "all_reduce_ms": path.all_reduce * iteration_ms,
            "stages_ms": [share * iteration_ms for share in path.stages],
        },
        "devices": asdict(breakdown.devices),
        "stages": [asdict(parts) for parts in breakdown.stages],
        "sensitivity": _sensitivity_to_json(sensitivity),
        "files": list(map(str, files)),
    }


def _sensitivity_to_json(sensitivity: Sensitivity | str | None) -> dict[str, Any] | None:
    if sensitivity is None:
        return None
    if isinstance(sensitivity, str):
        return {"left_out": sensitivity}
    return {
        "base_iteration_time_ms": sensitivity.base_iteration_time_ms,
        "base_is_plan": sensitivity.base_is_plan,
        "time_limit_s": sensitivity.time_limit_s,
        "interrupted": sensitivity.interrupted,
        "changes": [_answer_to_json(answer, sensitivity.base_tokens_per_second) for answer in sensitivity.answers],
    }


def _answer_to_json(answer: Answer, base_tokens_per_second: float) -> dict[str, Any]:
    return {
        "kind": answer.change.kind,
        "subject": answer.change.subject,
        "label": answer.change.label,
        "status": answer.status,
        "iteration_time_ms": answer.iteration_time_ms,
        "tokens_per_second": answer.tokens_per_second,
        "throughput_gain": answer.gain(base_tokens_per_second),
        "gap": answer.gap,
        "found": answer.found,
        "seconds": answer.seconds,
    }
