"""All problems of an experiment: what the search will solve."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.outer import OuterChoice, outer_choices, recompute_modes
from poseidon.cost.part_rows import require_rows
from poseidon.cost.problem import Problem
from poseidon.cost.refusal import no_choice_error
from poseidon.inputs.experiment import Experiment
from poseidon.profile import Profile, load_profile


def build_problem(experiment: Experiment, profile: Profile, choice: OuterChoice) -> Problem:
    """The problem of one outer choice; raises InputError when the profile lacks a row for it.

    To build many, use `costs` or one `ProblemBuilder`.
    """
    require_rows(profile, experiment, [choice])
    return ProblemBuilder(experiment, profile).build(choice)


def costs(experiment: Experiment, profile: Profile | None = None) -> Iterator[tuple[OuterChoice, Problem]]:
    """Every feasible outer choice with its problem, in a fixed order.

    Choices where the memory of some stage doesn't suffice are included: their limits say so. Raises InputError when the
    cluster, the model and the batch allow no choice at all, or when the profile lacks a row.
    """
    found = outer_choices(experiment)
    if not found.choices:
        raise no_choice_error(experiment, found.refusals)
    loaded = load_profile(experiment, recompute=recompute_modes(experiment)) if profile is None else profile
    require_rows(loaded, experiment, found.choices)
    builder = ProblemBuilder(experiment, loaded)
    return ((choice, builder.build(choice)) for choice in found.choices)
