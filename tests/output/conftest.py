from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.inputs.experiment import load_experiment
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan


@pytest.fixture
def make_plan(write_experiment: Callable[..., Path]) -> Callable[..., Plan]:
    """The plan of the example experiment, with changes (see `write_experiment`)."""

    def make(**changes: dict[str, object]) -> Plan:
        plan = find_plan(load_experiment(write_experiment(**changes)))
        assert isinstance(plan, Plan)
        return plan

    return make
