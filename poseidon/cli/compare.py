"""``poseidon compare``: policies side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.experiment_options import experiment_from, experiment_options
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.compare.compare import Comparison

ENTRANT_NAMES = ("exact", "exact-wide", "eq1", "paper", "brute-force", "metis", "hexiscale")
DEFAULT_NAMES = ("exact", "exact-wide", "eq1", "metis", "hexiscale")
DEFAULT_LIMIT_S = 60.0


@click.command("compare", short_help="Compare policies on one experiment.")
@experiment_options
@click.option(
    "--policy",
    "names",
    type=click.Choice(ENTRANT_NAMES),
    multiple=True,
    help=f"Policy to compare; repeatable (default: {', '.join(DEFAULT_NAMES)}).",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(0, min_open=True),
    default=DEFAULT_LIMIT_S,
    metavar="S",
    help=f"Seconds that each policy gets at the most (default {DEFAULT_LIMIT_S:.0f}).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write DIR/comparison.parquet, and each plan to DIR/POLICY/plan.json.",
)
@result_options
def compare(
    names: tuple[str, ...], time_limit_s: float, out: Path | None, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Finds a plan of EXPERIMENT with each policy and sets them side by side, all timed under the DAG.

    exact is Poseidon, exact-wide the same with a TP degree for each stage; eq1 searches the space of exact, but by the
    static formula of earlier planners; metis and hexiscale are other planners (docs/rivals.md). The columns: time of an
    iteration, how much slower than the fastest, the time that Eq. 1 gives the same plan, seconds of the search, the
    fullest stage's part of its memory.

    \b
    Examples:
      poseidon compare configs/experiments/setting2.yaml
      poseidon compare configs/experiments/setting6-96.yaml --time-limit 300 --out runs/compare-96
    """
    from poseidon.compare.compare import compare as compare_policies
    from poseidon.output.plan_file import prepare_directory
    from poseidon.output.progress import display

    experiment = experiment_from(options)
    if out is not None:
        prepare_directory(out)
    with display(quiet) as progress:
        result = compare_policies(experiment, tuple(dict.fromkeys(names)), time_limit_s, progress.show)
    return _deliver(result, out, Reporting(as_json, quiet))


def _deliver(result: Comparison, out: Path | None, reporting: Reporting) -> int:
    from poseidon.compare.row import comparison_to_json
    from poseidon.compare.table import comparison_text

    kept = _write(result, out) if out is not None else ""
    reporting.tell(lambda stream: comparison_text(result, stream) + kept)
    reporting.result(comparison_to_json(result))
    if result.interrupted:
        return ExitCode.INTERRUPTED
    if result.best_ms is not None:
        return ExitCode.DONE
    infeasible = any(entry.status == "infeasible" for entry in result.entries)
    return ExitCode.NO_PLAN_FITS if infeasible else ExitCode.TIME_LIMIT


def _write(result: Comparison, out: Path) -> str:
    """Writes rows and plans; says where they are."""
    from poseidon.compare.parquet import write_comparison
    from poseidon.output.plan_file import prepare_directory, write_plan
    from poseidon.plan.plan import Plan
    from poseidon.whole_file import refuse_link

    for entry in result.entries:
        if isinstance(entry.answer, Plan):
            refuse_link(out / entry.name)
            prepare_directory(out / entry.name)
            write_plan(entry.answer, out / entry.name)
    return f"\n\nRows: {write_comparison(result, out)}\nPlans: {out}/POLICY/plan.json"
