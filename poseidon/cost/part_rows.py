"""The profile rows that one kind of stage needs, and those that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from poseidon.cost.outer import OuterChoice
from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import ANALYTIC, Experiment
from poseidon.inputs.training import Recompute
from poseidon.profile.profile import LayerKey, Profile, Row, RowKey

SHOWN_ROWS = 20


@dataclass(frozen=True)
class PartRows:
    """One row for each layer type, one each for the embedding and the head."""

    layers: tuple[Row, ...]
    embedding: Row
    head: Row
    head_alone: Row
    """The head of a pipeline of one stage: a tied output matrix is the embedding, which is there already."""


def part_rows(profile: Profile, experiment: Experiment, at: RowKey, recompute: Recompute) -> PartRows:
    """The rows of a kind; KeyError for a missing one (`require_rows` asks for them all beforehand)."""
    model, element = experiment.model, experiment.training.parameter_bytes.weight
    head = profile.head[at]
    tied = model.output_projection_parameters * element / at.tp if model.tied_embeddings else 0.0
    return PartRows(
        layers=tuple(profile.layers[LayerKey(at, name, recompute)] for name in model.distinct_layer_types),
        embedding=profile.embedding[at],
        head=head,
        head_alone=replace(head, weight_bytes=max(0.0, head.weight_bytes - tied)),
    )


def require_rows(profile: Profile, experiment: Experiment, choices: Iterable[OuterChoice]) -> None:
    """Raises one InputError that lists every row that the choices need and the profile doesn't have."""
    missing: dict[str, None] = {}
    for at, recompute in _needed(choices):
        for name in experiment.model.distinct_layer_types:
            key = LayerKey(at, name, recompute)
            if key not in profile.layers:
                missing[f"layers {key}"] = None
        if at not in profile.embedding:
            missing[f"embedding {at}"] = None
        if at not in profile.head:
            missing[f"head {at}"] = None
    if missing:
        shown = ", ".join(list(missing)[:SHOWN_ROWS])
        more = f" and {len(missing) - SHOWN_ROWS} more" if len(missing) > SHOWN_ROWS else ""
        file = "" if experiment.profile == ANALYTIC else experiment.profile
        raise InputError(Mistake(file, "", f"the profile has no row for {shown}{more}"))


def _needed(choices: Iterable[OuterChoice]) -> dict[tuple[RowKey, Recompute], None]:
    return {
        (RowKey(placement.accelerator, placement.tp, choice.micro_batch_of(placement)), choice.recompute): None
        for choice in choices
        for placement in choice.layout.placements
    }
