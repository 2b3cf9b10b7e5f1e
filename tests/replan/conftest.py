from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.inputs.experiment import Experiment, load_experiment


@pytest.fixture
def experiment(write_experiment: Callable[..., Path]) -> Callable[..., Experiment]:
    """The example experiment, with changes (see `write_experiment`)."""
    return lambda **changes: load_experiment(write_experiment(**changes))
