"""``poseidon explain``: why a plan is the way it is, and not another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.plan import Plan

DEFAULT_TOP = 8
DEFAULT_LIMIT_S = 30.0


@click.command("explain", short_help="Say why a plan is the way it is, and not another.")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), metavar="OTHER.json", help="Set another plan beside it.")
@click.option(
    "--with",
    "fixed",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set the best plan with this setting beside it: dp, tp, pp, micro_batch_size, schedule, num_chunks, "
    "recompute, layers or order; several with commas, or repeated.",
)
@click.option("--all", "everything", is_flag=True, help="Work out and show every outer choice and every refusal.")
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(0, min_open=True),
    default=DEFAULT_LIMIT_S,
    metavar="S",
    help=f"Seconds for the fresh search (default {DEFAULT_LIMIT_S:.0f}).",
)
@result_options
def explain(
    plan: Path,
    against: Path | None,
    fixed: tuple[str, ...],
    everything: bool,
    time_limit_s: float,
    as_json: bool,
    quiet: bool,
) -> int:
    """Explains PLAN, a plan.json: what limits it, what is proven, and why the other outer choices lose.

    With --against or --with it sets another plan beside it and says where the difference in time comes from.

    \b
    Examples:
      poseidon explain runs/quickstart/plan.json
      poseidon explain plan.json --against other.json
      poseidon explain plan.json --with pp=8
      poseidon explain plan.json --with tp=2,layers=6,8,10,16 --with order=A2-3*2,A2-2*2
    """
    from poseidon.output.plan_file import read_plan
    from poseidon.plan.sound import require_sound

    if against is not None and fixed:
        raise click.UsageError("give either --against or --with, not both")
    reporting = Reporting(as_json, quiet)
    this = read_plan(plan)
    require_sound(this, str(plan))
    if against is not None:
        other = read_plan(against)
        require_sound(other, str(against))
        return _compare(this, other, (str(plan), str(against)), reporting)
    if fixed:
        return _with(this, str(plan), fixed, time_limit_s, reporting)
    return _alone(this, everything, time_limit_s, reporting)


def _alone(plan: Plan, everything: bool, time_limit_s: float, reporting: Reporting) -> int:
    from poseidon.explain.outer_choices import survey
    from poseidon.explain.plan_view import explanation_text
    from poseidon.explain.to_json import explanation_to_json
    from poseidon.plan.time_breakdown import pipeline_breakdown

    time = pipeline_breakdown(plan.pipeline)
    surveyed = survey(plan.experiment, None if everything else DEFAULT_TOP, time_limit_s)
    reporting.tell(lambda stream: explanation_text(plan, time, surveyed, stream, everything=everything))
    reporting.result(explanation_to_json(plan, time, surveyed))
    return ExitCode.DONE


def _compare(this: Plan, other: Plan, names: tuple[str, str], reporting: Reporting) -> int:
    from poseidon.explain.against_view import comparison_text
    from poseidon.explain.difference import compared
    from poseidon.explain.to_json import comparison_to_json

    comparison = compared(this, other, *names)
    reporting.tell(lambda stream: comparison_text(comparison, names, stream))
    reporting.result(comparison_to_json(comparison))
    return ExitCode.DONE


def _with(plan: Plan, name: str, texts: tuple[str, ...], time_limit_s: float, reporting: Reporting) -> int:
    from dataclasses import replace

    from poseidon.explain.constraint import parsed_constraint
    from poseidon.explain.fixed_search import Infeasible, plan_with
    from poseidon.output.streams import write_error
    from poseidon.plan import NoPlan
    from poseidon.search.result import TerminationReason

    constraint = parsed_constraint(texts, plan.experiment)
    other = plan_with(plan.experiment, constraint, time_limit_s)
    if isinstance(other, Infeasible):
        write_error(f"no plan with {constraint}: {other}")
        return ExitCode.NO_PLAN_FITS
    if isinstance(other, NoPlan):
        write_error(other.reason)
        interrupted = other.search.termination is TerminationReason.INTERRUPTED
        return ExitCode.INTERRUPTED if interrupted else ExitCode.TIME_LIMIT
    other = replace(other, experiment=plan.experiment)  # what was fixed is said once
    return _compare(plan, other, (name, f"the best plan with {constraint}"), reporting)
