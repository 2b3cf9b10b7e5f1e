"""The options that describe an experiment and its space, and the experiment that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from poseidon.cli.effort_options import EFFORT_FIELDS, given
from poseidon.cli.schedule_choice import ScheduleChoice

if TYPE_CHECKING:
    from poseidon.inputs import Experiment

Command = TypeVar("Command", bound=Callable[..., Any])

TRAINING_FIELDS = ("global_batch_size", "seq_length", "micro_batch_sizes", "schedules", "num_chunks", "recompute")
SPACE_FIELDS = (
    "assignment",
    "tp",
    "allow_idle",
    "target",
    "fixed_dp",
    "fixed_tp",
    "fixed_pp",
    "max_memory_fraction",
)
SEARCH_FIELDS = (*SPACE_FIELDS, *EFFORT_FIELDS, "top")

ASSIGNMENTS = ("node", "stage")
TP_SCOPES = ("uniform", "per-type", "per-stage")
TARGETS = ("megatron",)
RECOMPUTE = ("none", "selective", "full", "auto")

_COUNT = click.IntRange(1)

_OPTIONS = (
    click.option("--model", metavar="FILE", help="Model, or Hugging Face config.json (instead of EXPERIMENT)."),
    click.option("--cluster", metavar="FILE", help="Cluster (instead of EXPERIMENT)."),
    click.option("--global-batch-size", type=_COUNT, metavar="G", help="Sequences of one iteration."),
    click.option("--seq-length", type=_COUNT, metavar="S", help="Tokens of a sequence."),
    click.option("--profile", metavar="FILE", help="Profile file, or analytic."),
    click.option(
        "--micro-batch-size",
        "micro_batch_sizes",
        type=_COUNT,
        multiple=True,
        metavar="N",
        help="Sequences of a micro-batch to choose from; repeatable.",
    ),
    click.option(
        "--schedule",
        "schedules",
        type=ScheduleChoice(),
        multiple=True,
        help="Pipeline schedule to choose from; repeatable.",
    ),
    click.option(
        "--num-chunks",
        type=click.IntRange(2),
        multiple=True,
        metavar="V",
        help="Chunks a stage of interleaved_1f1b; repeatable.",
    ),
    click.option(
        "--recompute", type=click.Choice(RECOMPUTE), help="Activations that are recomputed; auto: the search chooses."
    ),
    click.option(
        "--assignment",
        type=click.Choice(ASSIGNMENTS),
        help="node (default): whole nodes in any order; stage: stage types in any order.",
    ),
    click.option(
        "--tp",
        type=click.Choice(TP_SCOPES),
        help="One TP degree, one for each accelerator type, or any for each stage.",
    ),
    click.option("--allow-idle", is_flag=True, default=None, help="Devices may stay unused."),
    click.option("--target", type=click.Choice(TARGETS), help="Only what this framework can run."),
    click.option("--fixed-dp", type=_COUNT, metavar="N", help="Only this DP degree."),
    click.option("--fixed-tp", type=_COUNT, metavar="N", help="Only this TP degree."),
    click.option("--fixed-pp", type=_COUNT, metavar="N", help="Only this number of stages."),
    click.option(
        "--max-memory-fraction",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="F",
        help="Part of each device's memory that a plan may fill (default 1).",
    ),
)


def experiment_options(command: Command) -> Command:
    """Adds the argument EXPERIMENT and the options that replace it or override parts of it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.argument("experiment", required=False, metavar="[EXPERIMENT]")(command)


def experiment_from(options: Mapping[str, Any]) -> Experiment:
    """The experiment of a command; what the command line says goes before what the file says.

    Raises UsageError where the options do not make one, and InputError with every mistake of the files.
    """
    from poseidon.inputs import build_experiment, load_experiment

    overrides = {
        "training": given(options, TRAINING_FIELDS),
        "search": given(options, SEARCH_FIELDS),
        "profile": options["profile"],
    }
    if options["experiment"] is not None:
        if options["model"] is not None or options["cluster"] is not None:
            raise click.UsageError("give either EXPERIMENT or --model and --cluster, not both")
        return load_experiment(options["experiment"], **overrides)
    needed = ("model", "cluster", "global_batch_size", "seq_length")
    missing = ["--" + name.replace("_", "-") for name in needed if options[name] is None]
    if len(missing) == len(needed):
        raise click.UsageError("give EXPERIMENT.yaml, or --model, --cluster, --global-batch-size and --seq-length")
    if missing:
        raise click.UsageError(f"without EXPERIMENT also give {', '.join(missing)}")
    if overrides["profile"] is None:
        del overrides["profile"]
    return build_experiment(*(options[name] for name in needed), **overrides)
