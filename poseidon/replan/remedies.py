"""What would make a plan possible on a cluster that has none: each way is tried before it is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from poseidon.cost import outer_choices
from poseidon.errors import InputError
from poseidon.explain.first_plan import first_plan
from poseidon.inputs import Experiment, experiment_from_resolved

NEAR_BATCHES = 64
"""How far from the global batch, in sequences, other ones are looked for."""


@dataclass(frozen=True)
class Remedy:
    """A change, as a person would make it."""

    text: str
    experiment: Experiment


def remedies(experiment: Experiment) -> Iterator[str]:
    """The changes with which there is a plan, the least ones first."""
    for remedy in _changes(experiment):
        if first_plan(remedy.experiment) is not None:
            yield remedy.text


def _changes(experiment: Experiment) -> Iterator[Remedy]:
    search, training = experiment.search, experiment.training
    options: list[tuple[str, dict[str, Any]]] = []
    if not search.allow_idle:
        options.append(("--allow-idle (devices may stay unused)", {"search": {"allow_idle": True}}))
    fixed = [name for name in ("fixed_dp", "fixed_tp", "fixed_pp") if getattr(search, name) is not None]
    options += [(f"a plan without search.{name}", {"search": {name: None}}) for name in fixed]
    if search.tp == "uniform" and search.target is None:
        options.append(("a plan with search.tp: per-type", {"search": {"tp": "per-type"}}))
    if training.recompute in ("none", "selective"):
        options.append(("a plan with training.recompute: full", {"training": {"recompute": "full"}}))
    for text, change in options:
        changed = _changed(experiment, change)
        if changed is not None:
            yield Remedy(text, changed)
    yield from _batches(experiment)


def _batches(experiment: Experiment) -> Iterator[Remedy]:
    """The nearest global batch that some DP x micro-batch divides, where that is what is wrong."""
    batch = experiment.training.global_batch_size
    if outer_choices(experiment).choices:
        return
    near = sorted(range(max(1, batch - NEAR_BATCHES), batch + NEAR_BATCHES + 1), key=lambda size: abs(size - batch))
    for size in near:
        changed = _changed(experiment, {"training": {"global_batch_size": size}})
        if size != batch and changed is not None and outer_choices(changed).choices:
            yield Remedy(f"--global-batch-size {size}", changed)
            return


def _changed(experiment: Experiment, change: dict[str, dict[str, Any]]) -> Experiment | None:
    """The experiment with some fields replaced; None where its parts then do not fit together."""
    data = experiment.resolved()
    for part, fields in change.items():
        data[part] |= fields
    try:
        return experiment_from_resolved(data)
    except InputError:
        return None
