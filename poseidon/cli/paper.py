"""``poseidon paper``: the paper's evaluation, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.backend_options import backend_of, backend_options
from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poseidon.paper.conduct import Evaluation
    from poseidon.paper.exhibit import Exhibit

EXPERIMENTS = Path("configs/experiments")
DEFAULT_LIMIT_S = 60.0


@click.command("paper", short_help="Make the figures and tables of the Poseidon paper anew.")
@click.argument("names", nargs=-1, metavar="[EXHIBIT]...")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where rows, data and plots go."
)
@click.option(
    "--experiments",
    type=click.Path(path_type=Path),
    default=EXPERIMENTS,
    metavar="DIR",
    help=f"The settings' experiment files (default {EXPERIMENTS}).",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(0, min_open=True),
    default=DEFAULT_LIMIT_S,
    metavar="S",
    help=f"Seconds that each search gets at the most (default {DEFAULT_LIMIT_S:.0f}).",
)
@click.option("--page", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write DIR/results.md.")
@click.option("--no-run", is_flag=True, help="Measure nothing: take the rows that are there.")
@click.option("--redo", is_flag=True, help="Measure everything anew.")
@click.option("--list", "as_list", is_flag=True, help="Print the exhibits and stop.")
@backend_options
@result_options
def paper(
    names: tuple[str, ...],
    out: Path | None,
    experiments: Path,
    time_limit_s: float,
    page: Path | None,
    no_run: bool,
    redo: bool,
    as_list: bool,
    workers: int | None,
    ray: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Makes each EXHIBIT (figure or table of arXiv 2609.06086; default: all) anew: DIR/EXHIBIT.parquet, .png, .svg.

    They are made of rows that studies measure and keep in DIR/rows. The same command again goes on after an
    interruption; what was measured of the same inputs is not measured twice.

    \b
    Examples:
      poseidon paper --list
      poseidon paper figure-7 table-1 --out runs/paper
      poseidon paper --out runs/paper --page docs
      poseidon paper --out runs/paper --no-run --page docs
    """
    from poseidon.paper.registry import EXHIBITS
    from poseidon.paper.view import list_text, list_to_json

    chosen, reporting = _chosen(EXHIBITS, names), Reporting(as_json, quiet)
    if as_list:
        reporting.tell(lambda stream: list_text(chosen, stream))
        reporting.result(list_to_json(chosen))
        return ExitCode.DONE
    if out is None:
        raise click.UsageError("missing option '--out', which says where rows, data and plots go")
    if no_run and redo:
        raise click.UsageError("give either --no-run or --redo, not both")
    try:
        evaluation = (
            _kept(chosen, out)
            if no_run
            else _measured(chosen, out, experiments, time_limit_s, workers, ray, quiet=quiet, redo=redo)
        )
    except KeyboardInterrupt:
        return _interrupted(out)
    return _deliver(evaluation, chosen, out, page, reporting)


def _chosen(exhibits: Sequence[Exhibit], names: tuple[str, ...]) -> list[Exhibit]:
    """The exhibits of these names, in the paper's order; UsageError for a name that there is none of."""
    known = [exhibit.name for exhibit in exhibits]
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no exhibit {name!r}; there are {', '.join(known)}")
    return [exhibit for exhibit in exhibits if not names or exhibit.name in names]


def _measured(
    exhibits: Sequence[Exhibit],
    out: Path,
    experiments: Path,
    time_limit_s: float,
    workers: int | None,
    ray: str | None,
    *,
    quiet: bool,
    redo: bool,
) -> Evaluation:
    from poseidon.output.plan_file import prepare_directory
    from poseidon.paper.conduct import conduct, needed
    from poseidon.paper.progress import display
    from poseidon.paper.registry import STUDIES
    from poseidon.paper.request import Request

    prepare_directory(out)
    with display(quiet) as progress, backend_of(workers, ray) as backend:
        request = Request(experiments, time_limit_s, backend, progress.tell)
        return conduct(needed(exhibits, STUDIES), request, out, progress, redo=redo)


def _kept(exhibits: Sequence[Exhibit], out: Path) -> Evaluation:
    from poseidon.paper.conduct import kept_studies, needed
    from poseidon.paper.registry import STUDIES

    return kept_studies(needed(exhibits, STUDIES), out)


def _interrupted(out: Path) -> int:
    from poseidon.output.streams import write_error

    write_error(f"interrupted: what is finished is kept in {out}; the same command goes on from there (without --redo)")
    return ExitCode.INTERRUPTED


def _deliver(
    evaluation: Evaluation, chosen: Sequence[Exhibit], out: Path, page: Path | None, reporting: Reporting
) -> int:
    """Writes exhibits and page, and shows what is found."""
    from poseidon.errors import InputError, Mistake
    from poseidon.paper.exhibit_files import shown_exhibits, write_exhibit
    from poseidon.paper.view import results_text, results_to_json

    results, absent = shown_exhibits(chosen, evaluation)
    if not results:
        raise InputError(Mistake(str(out), "", "has no rows of these exhibits; run the command without --no-run"))
    results = [write_exhibit(shown, out) for shown in results]
    written = None if page is None else _write_page(out, page)
    kept = f"\nFiles: {out}/EXHIBIT.parquet, .png, .svg; rows of the studies: {out}/rows"
    kept += f"\nPage: {written}" if written is not None else ""
    reporting.tell(lambda stream: results_text(results, absent, stream) + kept)
    reporting.result(results_to_json(evaluation, results, absent, written))
    return ExitCode.DONE


def _write_page(out: Path, page: Path) -> Path:
    """The page of all exhibits that the directory has rows of, whatever this command was asked for."""
    from poseidon.paper.conduct import kept_studies
    from poseidon.paper.exhibit_files import shown_exhibits
    from poseidon.paper.page import write_page
    from poseidon.paper.registry import EXHIBITS, STUDIES

    evaluation = kept_studies(STUDIES, out)
    return write_page(evaluation, *shown_exhibits(EXHIBITS, evaluation), page)
