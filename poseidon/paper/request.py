"""What the studies are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.search.backend import Backend

SETTINGS = ("setting1", "setting2", "setting3", "setting4", "setting5")
SCALE_SETTINGS = ("setting6-96", "setting6-192", "setting6-288")


@dataclass(frozen=True)
class Request:
    """Where the experiments are, how long a search may take, and where to search."""

    experiments: Path
    """The folder of experiment files, named as `SETTINGS` and `SCALE_SETTINGS` (configs/experiments)."""
    time_limit_s: float
    """Seconds that each search gets at the most."""
    backend: Backend | None
    """None: this process."""
    tell: Callable[[str], None]
    """Takes one plain line on what is being measured."""

    def experiment(self, name: str, **changes: dict[str, object]) -> Experiment:
        """An experiment by its name, with fields of its `training` or `search` changed; raises InputError."""
        return load_experiment(self.experiments / f"{name}.yaml", **changes)  # type: ignore[arg-type]
