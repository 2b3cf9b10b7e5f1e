"""What `poseidon profile` is asked to measure: an experiment's needs, or what options say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from poseidon.profile.measure.job import MeasureJob

NEEDED = ("model", "accelerator", "seq_length", "out")
MICRO_BATCH_SIZES = (1, 2, 4)
"""As the experiment's own default."""


def check_usage(experiment: Path | None, options: dict[str, Any]) -> None:
    """Raises UsageError where options are missing or don't go together."""
    if experiment is not None and options["model"] is not None:
        raise click.UsageError("give either EXPERIMENT or --model, not both")
    needed = NEEDED if experiment is None else ("accelerator", "out")
    missing = ["--" + name.replace("_", "-") for name in needed if options[name] is None]
    if missing:
        raise click.UsageError(f"missing {', '.join(missing)}" + ("" if experiment else " (or give EXPERIMENT.yaml)"))


def job_from(experiment: Path | None, options: dict[str, Any], world_size: int) -> MeasureJob:
    """The job; options go before what the experiment says. InputError with everything that can't be measured."""
    from dataclasses import replace

    from poseidon.errors import InputError
    from poseidon.profile.measure.job import default_tp_degrees, refusals

    job = _without_options(options) if experiment is None else _of_experiment(experiment, options["accelerator"])
    given = {name: value for name in _FIELDS if (value := options[name]) is not None and value != ()}
    if "recompute" in given:
        modes = given["recompute"]
        given["recompute"] = ("none", "selective", "full") if "auto" in modes else modes
    job = replace(job, **{name: _once(value) for name, value in given.items()})
    if not job.tp_degrees:
        job = replace(job, tp_degrees=default_tp_degrees(job, world_size))
    if mistakes := refusals(job, world_size, str(experiment or options["model"])):
        raise InputError(mistakes)
    return job


_FIELDS = (
    "seq_length",
    "micro_batch_sizes",
    "tp_degrees",
    "recompute",
    "precision",
    "sequence_parallel",
    "message_bytes",
)


def _without_options(options: dict[str, Any]) -> MeasureJob:
    from poseidon.inputs.model_file import load_model
    from poseidon.profile.measure.job import MeasureJob

    model = load_model(options["model"])
    return MeasureJob(model, options["accelerator"], options["seq_length"], MICRO_BATCH_SIZES, ())


def _of_experiment(path: Path, accelerator: str) -> MeasureJob:
    """Every row that a search of the experiment may ask for of one accelerator."""
    from poseidon.errors import InputError, Mistake
    from poseidon.inputs import load_experiment
    from poseidon.inputs.experiment import ANALYTIC
    from poseidon.profile.degrees import tp_degrees
    from poseidon.profile.measure.job import MeasureJob

    # The profile that it names may be what is to be measured now.
    experiment = load_experiment(path, profile=ANALYTIC)
    if accelerator not in experiment.cluster.accelerators:
        known = ", ".join(experiment.cluster.accelerators)
        raise InputError(Mistake(str(path), "cluster", f"has no accelerator {accelerator!r}; it has {known}"))
    training = experiment.training
    return MeasureJob(
        model=experiment.model,
        accelerator=accelerator,
        seq_length=training.seq_length,
        micro_batch_sizes=training.micro_batch_sizes,
        tp_degrees=tp_degrees(experiment.model, experiment.cluster, accelerator),
        recompute=training.recompute_modes,
        precision=training.precision,
        sequence_parallel=training.sequence_parallel,
    )


def _once(value: Any) -> Any:
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value
