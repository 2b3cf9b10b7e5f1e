"""The options of `poseidon launch`, and the choices that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from poseidon.cli.experiment_options import RECOMPUTE

if TYPE_CHECKING:
    from poseidon.launch.choices import Choices

Command = TypeVar("Command", bound=Callable[..., Any])

FRAMEWORKS = ("megatron", "mindspeed", "mindspeed-llm")
SCHEDULES = ("1f1b", "interleaved_1f1b")
PATHS = ("cluster", "profile", "plan", "out")

_COUNT = click.IntRange(1)
_FILE = click.Path(dir_okay=False)

_OPTIONS = (
    click.option("--dry-run", is_flag=True, help="Print the new command, ready to paste; start no training."),
    click.option("--cluster", type=_FILE, metavar="FILE", help="The cluster (default: the machines are asked)."),
    click.option("--hosts", metavar="A,B,...", help="Host of every node, in the order of your node ranks."),
    click.option(
        "--inter-node-gbps",
        type=click.FloatRange(0, min_open=True),
        metavar="G",
        help="Without --cluster: what a node sends to another, Gbit/s in one direction.",
    ),
    click.option("--profile", type=_FILE, metavar="FILE", help="Profile file (default: analytic)."),
    click.option("--measure", is_flag=True, help="Measure a profile on this machine's devices first."),
    click.option("--plan", type=_FILE, metavar="FILE", help="Use this plan instead of a search."),
    click.option("--framework", type=click.Choice(FRAMEWORKS), help="The framework (default: recognised)."),
    click.option("--framework-version", metavar="V", help="Its version, e.g. 0.12 for Megatron core 0.12."),
    click.option(
        "--recompute",
        type=click.Choice(RECOMPUTE),
        help="In place of the command's own recomputation; auto: the search chooses.",
    ),
    click.option(
        "--schedule",
        "schedules",
        type=click.Choice(SCHEDULES),
        multiple=True,
        help="Pipeline schedule to choose from; repeatable (default: those that the framework runs).",
    ),
    click.option(
        "--num-chunks", type=click.IntRange(2), multiple=True, metavar="V", help="Chunks a stage; repeatable."
    ),
    click.option(
        "--micro-batch-size",
        "micro_batch_sizes",
        type=_COUNT,
        multiple=True,
        metavar="N",
        help="Micro-batch size to choose from; repeatable (default: 1, 2, 4 and the command's own).",
    ),
    click.option("--fixed-dp", type=_COUNT, metavar="N", help="Only this DP degree."),
    click.option("--fixed-tp", type=_COUNT, metavar="N", help="Only this TP degree."),
    click.option("--fixed-pp", type=_COUNT, metavar="N", help="Only this number of stages."),
    click.option(
        "--time-limit",
        "time_limit_s",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Stop the search after this many seconds with the best plan so far.",
    ),
    click.option("--vocab-size", type=_COUNT, metavar="N", help="Tokens of the tokenizer, where no flag says it."),
    click.option(
        "--accept",
        multiple=True,
        metavar="FLAG",
        help="Pass this flag although the plan does not count it; repeatable.",
    ),
    click.option(
        "--allow-checkpoint-change", is_flag=True, help="Go on although a checkpoint needs to be converted first."
    ),
    click.option("--no-cache", "use_cache", flag_value=False, default=True, help="Neither use nor keep kept plans."),
    click.option("--out", type=click.Path(), metavar="DIR", help="Write the plan to DIR/plan.json."),
)


def launch_options(command: Command) -> Command:
    """Adds the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def choices_from(options: Mapping[str, Any], *, as_json: bool, quiet: bool) -> Choices:
    """The choices; UsageError for options that exclude each other, InputError for hosts and versions that are none."""
    from poseidon.launch.choices import Choices
    from poseidon.launch.hosts import host_names
    from poseidon.output.export.request import parsed_version

    if options["measure"] and options["profile"] is not None:
        raise click.UsageError("give either --profile or --measure, not both")
    if options["plan"] is not None and (options["measure"] or options["profile"] is not None):
        raise click.UsageError("a plan is there already: --plan needs no --profile and no --measure")
    if options["framework_version"] is not None:
        parsed_version(options["framework_version"])
    values = dict(options)
    values["hosts"] = () if options["hosts"] is None else host_names(options["hosts"])
    for name in PATHS:
        values[name] = None if options[name] is None else str(Path(options[name]).absolute())
    return Choices(**values, as_json=as_json, quiet=quiet)
