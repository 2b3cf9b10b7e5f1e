"""``poseidon search`` (``poseidon-search``): finds the best plan of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.backend_options import backend_of, backend_options
from poseidon.cli.effort_options import effort_options
from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.experiment_options import experiment_from, experiment_options
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.plan.plan import NoPlan, Plan


@click.command("search", short_help="Find the best plan of an experiment.")
@experiment_options
@effort_options
@backend_options
@click.option(
    "--top", type=click.IntRange(1, 1000), metavar="K", help="Report the best K plans, one for each outer choice."
)
@click.option(
    "--start",
    type=click.Path(path_type=Path),
    metavar="PLAN.json",
    help="Begin from an earlier plan, of this cluster or of one that lost or gained nodes.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the plan to DIR/plan.json; until the search is over its progress is in DIR/search.journal.",
)
@click.option("--resume", is_flag=True, help="Go on with the search that DIR/search.journal is the progress of.")
@result_options
def search(
    as_json: bool,
    quiet: bool,
    out: Path | None,
    start: Path | None,
    workers: int | None,
    ray: str | None,
    resume: bool,
    **options: Any,
) -> int:
    """Finds the fastest plan of EXPERIMENT (a YAML file) and proves that none is faster.

    Options go before what the file says. Ctrl-C keeps the best plan so far.

    \b
    Examples:
      poseidon-search configs/experiments/quickstart.yaml --out runs/quickstart
      poseidon-search --model configs/models/llama-3-8b.yaml --cluster configs/clusters/npu-1x1.yaml \\
          --global-batch-size 128 --seq-length 4096
      ray job submit -- poseidon-search configs/experiments/setting6-288.yaml --out /shared/runs/288
    """
    from poseidon.output.plan_file import prepare_directory, read_plan
    from poseidon.output.progress import display
    from poseidon.plan.plan import NoPlan
    from poseidon.planner import find_plan

    reporting = Reporting(as_json, quiet)
    if resume and out is None:
        raise click.UsageError("--resume goes on with the search in --out DIR: give --out")
    if ray is not None and options["experiment"] is None and Path(ray).is_file():
        options["experiment"], ray = ray, "auto"  # `--ray EXPERIMENT.yaml`: the address was left out
    experiment = experiment_from(options)
    if out is not None:
        prepare_directory(out)
    earlier = None if start is None else read_plan(start)
    with backend_of(workers, ray) as backend:
        with display(quiet) as progress:
            journal = None if out is None else out / JOURNAL
            plan = find_plan(experiment, progress.show, earlier, backend, journal, resume=resume)
        if isinstance(plan, NoPlan):
            return refuse(plan)
        return _deliver(plan, out, reporting)


JOURNAL = "search.journal"
"""File name of the progress of a search that is not over."""


def _deliver(plan: Plan, out: Path | None, reporting: Reporting) -> int:
    """Writes the plan and shows it."""
    from poseidon.output.plan_file import write_plan
    from poseidon.output.plan_json import plan_to_json
    from poseidon.output.plan_view import plan_text
    from poseidon.search.result import TerminationReason

    if out is not None:
        path = write_plan(plan, out)
        kept = f"Plan: {path}"
        if (out / JOURNAL).exists():
            kept += f"\nThe search is not over: the same command with --resume goes on from {out / JOURNAL}."
    else:
        kept = "The plan is not kept: add --out DIR to write it to DIR/plan.json."
    reporting.tell(lambda stream: f"{plan_text(plan, stream)}\n{kept}")
    reporting.result(plan_to_json(plan))
    return ExitCode.INTERRUPTED if plan.search.termination is TerminationReason.INTERRUPTED else ExitCode.DONE


def refuse(answer: NoPlan) -> int:
    """Says why there is no plan; the exit status tells a proof from a limit."""
    from poseidon.output.streams import write_error
    from poseidon.search.result import SolutionStatus, TerminationReason

    write_error(answer.reason)
    if answer.status is SolutionStatus.INFEASIBLE:
        return ExitCode.NO_PLAN_FITS
    if answer.search.termination is TerminationReason.INTERRUPTED:
        return ExitCode.INTERRUPTED
    return ExitCode.TIME_LIMIT
