"""``poseidon costs``: writes every outer choice of an experiment as a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.experiment_options import experiment_from, experiment_options
from poseidon.cli.result_options import result_options


@click.command("costs", short_help="Write every outer choice as a problem: what the search will solve.")
@experiment_options
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="JSON lines (default: standard output).")
@result_options
def costs(as_json: bool, quiet: bool, out: Path | None, **options: Any) -> int:
    """Writes every outer choice of EXPERIMENT (DP, TP, micro-batch size, schedule) with its costs, one problem a line.

    \b
    Example:
      poseidon costs configs/experiments/quickstart.yaml --out costs.jsonl
      poseidon solve costs.jsonl --out results.jsonl
    """
    from poseidon.cost.costs import costs as problems_of
    from poseidon.cost.problem_file import problem_to_json
    from poseidon.output.json_text import json_line
    from poseidon.output.numbers import plural
    from poseidon.output.streams import write_error, write_lines

    experiment = experiment_from(options)
    problems = list(problems_of(experiment))
    for target in {out, None} if as_json else {out}:
        write_lines((json_line(problem_to_json(problem)) for _, problem in problems), target)
    if not quiet:
        write_error(
            f"{plural(len(problems), 'outer choice')} of {experiment.name}" + (f": {out}" if out is not None else "")
        )
    return ExitCode.DONE
