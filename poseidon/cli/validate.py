"""``poseidon validate``: predictions beside what others measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poseidon.validate.comparison import Comparison
    from poseidon.validate.registry import Entry


@click.command("validate", short_help="Rerun the comparisons with published measurements.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this comparison; repeatable.")
@click.option("--skip", multiple=True, metavar="NAME", help="Without this comparison; repeatable.")
@click.option("--list", "as_list", is_flag=True, help="Print the comparisons' names and stop.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write DIR/accuracy.md and its plots.",
)
@result_options
def validate(
    as_json: bool, quiet: bool, only: tuple[str, ...], skip: tuple[str, ...], as_list: bool, out: Path | None
) -> int:
    """Predicts what others measured or printed, from the data files that come with the package.

    Exit status 0 when every target is met, 1 when one is not. Needs the packages of poseidon-planner[validate].

    \b
    Example:
      poseidon validate --only ascend
      poseidon validate --out docs
    """
    from poseidon.output.streams import write_error, write_out
    from poseidon.validate.registry import comparisons
    from poseidon.validate.summary import results_to_json
    from poseidon.validate.view import results_text

    entries, absent = comparisons()
    chosen = _chosen(entries, only, skip)
    if as_list:
        write_out("\n".join(entry.name for entry in chosen))
        return ExitCode.DONE
    for item in absent:
        if not quiet:
            write_error(f"left out: {item.module} {item.reason}")
    reporting = Reporting(as_json, quiet)
    results = [entry.run() for entry in chosen]
    reporting.tell(lambda stream: results_text(results, stream))
    reporting.result(results_to_json(results))
    if out is not None:
        _write_page(results, out)
        if not quiet:
            write_error(f"written: {out / 'accuracy.md'}")
    return ExitCode.DONE if all(result.met for result in results) else ExitCode.CHECK_FAILED


def _chosen(entries: Sequence[Entry], only: tuple[str, ...], skip: tuple[str, ...]) -> list[Entry]:
    """The comparisons that the options ask for; UsageError for a name that there is none of."""
    known = [entry.name for entry in entries]
    for name in (*only, *skip):
        if name not in known:
            raise click.UsageError(f"there is no comparison {name!r}; there are {', '.join(known)}")
    return [entry for entry in entries if (not only or entry.name in only) and entry.name not in skip]


def _write_page(results: Sequence[Comparison], out: Path) -> None:
    from poseidon.errors import InputError, Mistake
    from poseidon.validate.accuracy_page import accuracy_page
    from poseidon.validate.plots import write_plot

    try:
        out.mkdir(parents=True, exist_ok=True)
        for result in results:
            write_plot(result, out / f"accuracy-{result.name}.svg")
        page = accuracy_page(results, [result.name for result in results])
        (out / "accuracy.md").write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(Mistake(str(out), "", f"cannot be written: {error.strerror}")) from None
