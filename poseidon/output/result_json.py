"""The answer to one problem as JSON values (contract, "Result line")."""

from __future__ import annotations

import math
from typing import Any

from poseidon.cost.problem import Problem
from poseidon.search.result import SearchResult


def result_to_json(problem: Problem, result: SearchResult) -> dict[str, Any]:
    """Numbers that do not exist (of an infeasible problem, say) are null."""
    best = result.best
    stages = [
        {
            "kind": problem.kinds[stage.kind].name,
            "layers": list(stage.layers) if problem.num_chunks > 1 else stage.num_layers,
        }
        for stage in (best.stages if best else ())
    ]
    return {
        "name": problem.name,
        "status": str(result.status),
        "termination": str(result.termination),
        "iteration_time_ms": best.iteration_time_ms if best else None,
        "lower_bound_ms": _finite(result.lower_bound_ms),
        "gap": _finite(result.gap),
        "stages": stages,
        "seconds": result.seconds,
        "nodes": result.counters.search_nodes,
        "simulations": result.counters.simulations,
        "pruned": dict(result.counters.pruned),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
