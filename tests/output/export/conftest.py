from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from poseidon.inputs.experiment import load_experiment
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan

EXPERIMENTS = Path(__file__).parents[3] / "configs" / "experiments"


@functools.cache
def _searched(name: str, training: str, search: str) -> Plan:
    path = EXPERIMENTS / f"{name}.yaml"
    plan = find_plan(load_experiment(path, training=json.loads(training), search=json.loads(search)))
    assert isinstance(plan, Plan)
    return plan


@pytest.fixture
def searched() -> Callable[..., Plan]:
    """The plan of a shipped experiment, with changed training and search settings; each is searched once."""

    def plan(name: str, training: Mapping[str, Any] | None = None, search: Mapping[str, Any] | None = None) -> Plan:
        return _searched(name, json.dumps(training or {}), json.dumps(search or {}))

    return plan
