"""Poseidon: finds the fastest way to train a model on a mixed cluster, and proves that no better plan exists.

The names below are the public surface; each is loaded when it is first used, so that `import poseidon` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poseidon.cost.costs import costs
    from poseidon.errors import InputError, PoseidonError
    from poseidon.inputs.experiment import Experiment, build_experiment, load_experiment
    from poseidon.output.plan_file import read_plan, write_plan
    from poseidon.plan.check import check_plan
    from poseidon.plan.plan import NoPlan, Plan
    from poseidon.planner import find_plan
    from poseidon.search.options import SearchOptions
    from poseidon.search.result import SearchResult
    from poseidon.search.solve import solve

__all__ = [
    "Experiment",
    "InputError",
    "NoPlan",
    "Plan",
    "PoseidonError",
    "SearchOptions",
    "SearchResult",
    "build_experiment",
    "check_plan",
    "costs",
    "find_plan",
    "load_experiment",
    "read_plan",
    "solve",
    "write_plan",
]

_HOMES = {
    "Experiment": "poseidon.inputs.experiment",
    "InputError": "poseidon.errors",
    "NoPlan": "poseidon.plan.plan",
    "Plan": "poseidon.plan.plan",
    "PoseidonError": "poseidon.errors",
    "SearchOptions": "poseidon.search.options",
    "SearchResult": "poseidon.search.result",
    "build_experiment": "poseidon.inputs.experiment",
    "check_plan": "poseidon.plan.check",
    "costs": "poseidon.cost.costs",
    "find_plan": "poseidon.planner",
    "load_experiment": "poseidon.inputs.experiment",
    "read_plan": "poseidon.output.plan_file",
    "solve": "poseidon.search.solve",
    "write_plan": "poseidon.output.plan_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
