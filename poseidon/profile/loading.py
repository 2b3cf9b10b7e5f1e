"""The profile that an experiment asks for: analytic, or from its file."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import ANALYTIC, Experiment
from poseidon.inputs.training import Recompute
from poseidon.profile.analytic import analytic_profile
from poseidon.profile.file import read_profile
from poseidon.profile.profile import Profile


def load_profile(experiment: Experiment, *, recompute: Sequence[Recompute] | None = None) -> Profile:
    """The experiment's profile, for the given recomputation modes (default: the experiment's).

    Raises InputError when a profile file can't be used, or was taken at another sequence length or precision,
    or with another choice of sequence parallelism.
    """
    if experiment.profile == ANALYTIC:
        return analytic_profile(experiment, recompute=recompute)
    training = experiment.training
    profile = read_profile(experiment.profile, training.recompute_modes[0])
    mistakes = [
        Mistake(experiment.profile, field, f"is {taken}, but the experiment trains with {asked}; profile again")
        for field, taken, asked in (
            ("seq_length", profile.seq_length, training.seq_length),
            ("precision", profile.precision, training.precision),
            ("sequence_parallel", profile.sequence_parallel, training.sequence_parallel),
        )
        if taken is not None and taken != asked
    ]
    if mistakes:
        raise InputError(mistakes)
    return profile
