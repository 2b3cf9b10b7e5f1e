"""The policies that can be compared: what each of them changes in an experiment's search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poseidon.inputs.experiment import Experiment, experiment_from_resolved


@dataclass(frozen=True)
class Entrant:
    """A policy with its cost model, under one name; a `tp` replaces the experiment's scope of TP degrees."""

    name: str
    policy: str
    cost_model: str
    description: str
    tp: str = ""

    def experiment(self, experiment: Experiment, time_limit_s: float | None) -> Experiment:
        """The experiment with this policy, stopped after so many seconds (None: as the experiment says)."""
        data = experiment.resolved()
        changes: dict[str, Any] = {"policy": self.policy, "cost_model": self.cost_model}
        if self.tp:
            changes["tp"] = self.tp
        if time_limit_s is not None:
            changes["time_limit_s"] = time_limit_s
        data["search"] = {**data["search"], **changes}
        return experiment_from_resolved(data, experiment.name)


ENTRANTS = {
    entrant.name: entrant
    for entrant in (
        Entrant("exact", "exact", "dag", "Poseidon: proves its plan under the DAG"),
        Entrant(
            "exact-wide", "exact", "dag", "Poseidon with a TP degree for each stage, as the rivals have", "per-stage"
        ),
        Entrant("eq1", "exact", "eq1", "the same space, searched exactly under the static formula Eq. 1"),
        Entrant("paper", "paper", "dag", "the search of the Poseidon paper"),
        Entrant("brute-force", "brute-force", "dag", "times everything"),
        Entrant("metis", "metis", "dag", "Metis (USENIX ATC 2024)"),
        Entrant("hexiscale", "hexiscale", "dag", "HexiScale (arXiv 2409.01143)"),
    )
}
DEFAULT_ENTRANTS = ("exact", "exact-wide", "eq1", "metis", "hexiscale")


def default_entrants(experiment: Experiment) -> tuple[str, ...]:
    """What is compared unless somebody says otherwise: a space is not searched twice."""
    search = experiment.search
    same = search.tp == "per-stage" or search.target is not None
    return tuple(name for name in DEFAULT_ENTRANTS if not (same and name == "exact-wide"))
