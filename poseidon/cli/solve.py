"""``poseidon solve``: the search alone, one problem a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.backend_options import backend_of, backend_options
from poseidon.cli.effort_options import EFFORT_FIELDS, effort_options, given
from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.cost.problem import Problem
    from poseidon.search.backend import Backend
    from poseidon.search.options import SearchOptions


@click.command("solve", short_help="Solve problems, one a line: the search alone.")
@click.argument("problems", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Result lines (default: standard output).")
@effort_options
@backend_options
@result_options
def solve(
    problems: Path,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    workers: int | None,
    ray: str | None,
    **options: Any,
) -> int:
    """Solves PROBLEMS (JSON lines, as `poseidon costs` writes them) one by one; limits hold for each problem.

    \b
    Example:
      poseidon solve costs.jsonl --out results.jsonl
    """
    from poseidon.output.streams import write_error, write_lines

    tally: dict[str, int] = {}
    with backend_of(workers, ray) as backend:
        lines = _results(problems, _options(options), tally, backend)
        write_lines(_copied(lines) if as_json and out is not None else lines, out)
    interrupted = tally.pop(INTERRUPTED, 0)
    if not quiet:
        solved = ", ".join(f"{number:,} {status}" for status, number in sorted(tally.items())) or "no problems"
        write_error(f"{problems}: {solved}" + ("; interrupted" if interrupted else ""))
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


INTERRUPTED = "interrupted"


def _options(options: dict[str, Any]) -> SearchOptions:
    from poseidon.search.options import RIVALS, SearchOptions

    if options["policy"] in RIVALS:
        message = f"--policy {options['policy']} needs a whole experiment (poseidon search), not single problems"
        raise click.UsageError(message)
    if options["cost_model"] == "eq1" and options["policy"] not in (None, "exact"):
        raise click.UsageError(f"--cost-model eq1 is for the policy exact, not for {options['policy']}")
    return SearchOptions(**given(options, EFFORT_FIELDS))


def _copied(lines: Iterator[str]) -> Iterator[str]:
    """The lines, which standard output gets too."""
    from poseidon.output.streams import write_out

    for line in lines:
        write_out(line)
        yield line


def _results(path: Path, options: SearchOptions, tally: dict[str, int], backend: Backend | None) -> Iterator[str]:
    """A result line for each problem, in order; counts the statuses in `tally`. Ends early after an interruption."""
    from poseidon.cost.problem_file import read_problems
    from poseidon.errors import InputError, Mistake
    from poseidon.output.result_json import result_to_json
    from poseidon.search.result import TerminationReason
    from poseidon.search.solve import solve as solve_problems

    for number, problem in enumerate(read_problems(path)):
        if reason := _refusal(problem, options):
            raise InputError(Mistake(f"{path}:{_line_of(path, number)}", "schedule", reason))
        result = solve_problems([problem], options, backend=backend)
        tally[str(result.status)] = tally.get(str(result.status), 0) + 1
        yield json.dumps(result_to_json(problem, result), allow_nan=False)
        if result.termination is TerminationReason.INTERRUPTED:
            tally[INTERRUPTED] = 1
            return


def _refusal(problem: Problem, options: SearchOptions) -> str | None:
    """Why the problem's schedule can't run its shape, or the cost model can't time it; None if they can."""
    from poseidon.cost.pipeline_shape import PipelineShape
    from poseidon.search.static_policy import static_refusal

    if options.cost_model == "eq1" and (refusal := static_refusal(problem.schedule)):
        return refusal
    shape = PipelineShape(problem.schedule, problem.num_stages, problem.num_micro_batches, problem.num_chunks)
    try:
        return shape.refusal()
    except ValueError as error:
        return str(error)


def _line_of(path: Path, number: int) -> int:
    """The line of the problem with this 0-based number; blank lines are passed over."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        filled = (line for line, text in enumerate(lines, start=1) if text.strip())
        return next(line for position, line in enumerate(filled) if position == number)
