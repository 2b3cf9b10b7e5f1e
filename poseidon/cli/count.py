"""``poseidon count``: the exact size of an experiment's space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.experiment_options import experiment_from, experiment_options
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.cost.problem import Problem


@click.command("count", short_help="Count the feasible configurations of an experiment, exactly.")
@experiment_options
@result_options
def count(as_json: bool, quiet: bool, **options: Any) -> int:
    """Counts the feasible configurations of EXPERIMENT: orders of stages x layer allocations within memory.

    The number is exact, by dynamic programming, whatever its size.

    \b
    Example:
      poseidon count configs/experiments/setting1.yaml
    """
    from poseidon.cost.costs import costs

    experiment = experiment_from(options)
    counts = {problem.name: _count(problem) for _, problem in costs(experiment)}
    reporting = Reporting(as_json, quiet)
    if not as_json:
        _print(sum(counts.values()))
    reporting.tell(lambda stream: _table(counts, stream))
    choices = [{"name": name, "configurations": number} for name, number in counts.items()]
    reporting.result({"experiment": experiment.name, "configurations": sum(counts.values()), "outer_choices": choices})
    return ExitCode.DONE


def _count(problem: Problem) -> int:
    from poseidon.errors import InputError, Mistake
    from poseidon.search.count import count_configurations

    try:
        return count_configurations(problem)
    except ValueError as error:
        raise InputError(Mistake("", problem.name, str(error) or "is too large to count")) from None


def _print(total: int) -> None:
    from poseidon.output.streams import write_out

    write_out(str(total))


def _table(counts: dict[str, int], stream: TextIO) -> str:
    from poseidon.output.console import Columns, rendered

    columns = Columns(stream)
    columns.number("configurations")
    columns.name("outer choice")
    for name, number in counts.items():
        columns.row(f"{number:,}", name)
    return rendered([columns.table()], stream)
