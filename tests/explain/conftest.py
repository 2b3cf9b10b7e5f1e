from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan


@pytest.fixture
def experiment(write_experiment: Callable[..., Path]) -> Callable[..., Experiment]:
    """The example experiment, with changes (see `write_experiment`)."""
    return lambda **changes: load_experiment(write_experiment(**changes))


@pytest.fixture
def make_plan(experiment: Callable[..., Experiment]) -> Callable[..., Plan]:
    """Its plan."""

    def make(**changes: dict[str, object]) -> Plan:
        plan = find_plan(experiment(**changes))
        assert isinstance(plan, Plan)
        return plan

    return make
