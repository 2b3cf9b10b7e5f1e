"""What the studies are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.search.backend import Backend

SETTINGS = ("setting1", "setting2", "setting3", "setting4", "setting5")
SCALE_SETTINGS = ("setting6-96", "setting6-192", "setting6-288")


class PartStore(Protocol):
    """Keeps the finished parts of a study that is not over."""

    def get(self, key: str) -> Sequence[dict[str, Any]] | None:
        """The rows of a part; None where it is not there."""

    def put(self, key: str, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """Keeps the rows of a part; returns them as `get` will."""


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
    store: PartStore | None = None
    """Where finished parts are kept; None: nowhere."""
    names: frozenset[str] | None = None
    """The experiments that the study has named; None: any."""
    progress: Path | None = None
    """Folder where searches that take hours keep their journals and finished rows, whatever the limits of the run;
    None: nothing is kept.
    """

    def experiment(self, name: str, **changes: Mapping[str, object]) -> Experiment:
        """An experiment by its name, with fields of its `training` or `search` changed; raises InputError."""
        assert self.names is None or name in self.names, f"the study does not name the experiment {name}"
        return load_experiment(self.experiments / f"{name}.yaml", **changes)  # type: ignore[arg-type]

    def part(self, key: str, measure: Callable[[], Iterable[dict[str, Any]]]) -> Sequence[dict[str, Any]]:
        """The rows of a part of the study: kept from an interrupted run, or measured now and kept at once.

        `key` is unique within the study.
        """
        if self.store is None:
            return list(measure())
        kept = self.store.get(key)
        return self.store.put(key, list(measure())) if kept is None else kept
