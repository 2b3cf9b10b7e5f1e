"""``poseidon sweep``: many experiments from one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.backend_options import backend_options, place_of
from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poseidon.sweep.conduct import SweepResult
    from poseidon.sweep.executor import Executor
    from poseidon.sweep.grid import Run
    from poseidon.sweep.plot import PlotPlan
    from poseidon.sweep.store import Store
    from poseidon.sweep.sweep import Sweep


@click.command("sweep", short_help="Do many experiments; one Parquet row a run, resumable.")
@click.argument("file", type=click.Path(path_type=Path), metavar="SWEEP.yaml")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where rows, table and plot go.")
@click.option("--list", "only_list", is_flag=True, help="Print the runs without doing them.")
@click.option("--dry-run", "only_list", is_flag=True, help="The same as --list.")
@click.option("--restart", is_flag=True, help="Forget the runs that DIR holds; do all of them anew.")
@backend_options
@result_options
def sweep(
    file: Path,
    out: Path | None,
    only_list: bool,
    restart: bool,
    workers: int | None,
    ray: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Does all runs of SWEEP.yaml (a grid over an experiment's fields) and keeps each as a row of DIR/runs.parquet.

    The same command again goes on after an interruption or a kill: finished runs are not done twice.

    \b
    Example:
      poseidon sweep configs/sweeps/bandwidth.yaml --list
      poseidon sweep configs/sweeps/bandwidth.yaml --out runs/bandwidth --workers 2
    """
    from poseidon.sweep.grid import expand
    from poseidon.sweep.plot import plot_plan
    from poseidon.sweep.store import Store
    from poseidon.sweep.sweep import load_sweep

    if out is None and not only_list:
        raise click.UsageError("missing option '--out', which says where the rows go")
    reporting = Reporting(as_json, quiet)
    content = load_sweep(file)
    plot, runs = plot_plan(content), expand(content)
    if only_list:
        return _list(content, runs, Store(out) if out is not None else None, reporting)
    assert out is not None
    store, executor = Store(out), _executor(workers, ray)
    result = _conduct(content, runs, store, executor, quiet=quiet, restart=restart)
    if result is None:
        return ExitCode.INTERRUPTED
    return _deliver(result, plot, store, reporting)


def _executor(workers: int | None, ray: str | None) -> Executor:
    """Where the runs are done."""
    place = place_of(workers, ray)
    if place.ray is not None:
        from ray_jobs import ray_runs

        return ray_runs(place.ray, place.workers)
    if place.workers is not None and place.workers > 1:
        from poseidon.sweep.processes import WorkerProcesses

        return WorkerProcesses(place.workers)
    from poseidon.sweep.executor import InProcess

    return InProcess()


def _conduct(
    content: Sweep, runs: Sequence[Run], store: Store, executor: Executor, *, quiet: bool, restart: bool
) -> SweepResult | None:
    """All rows; None after an interruption, when the finished ones are kept."""
    from poseidon.output.numbers import plural
    from poseidon.output.streams import write_error
    from poseidon.sweep.conduct import conduct
    from poseidon.sweep.progress import display

    try:
        with display(quiet) as progress:
            return conduct(content, runs, store, executor, progress, restart=restart)
    except KeyboardInterrupt:
        different = {run.identity for run in runs}
        done = len(store.rows(different))
        left = "" if restart is False else " without --restart"
        write_error(
            f"interrupted: {done:,} of {plural(len(different), 'run')} are done and kept in {store.directory}; "
            f"the same command{left} goes on from there"
        )
        return None


def _list(content: Sweep, runs: Sequence[Run], store: Store | None, reporting: Reporting) -> int:
    from poseidon.sweep.grid import Refusal
    from poseidon.sweep.table import list_text

    done = set(store.rows({run.identity for run in runs})) if store is not None else set()
    reporting.tell(lambda stream: list_text(content, runs, done, stream))
    listed: list[dict[str, Any]] = [
        {
            "run": run.number,
            "run_id": run.identity,
            "name": run.name,
            "done": run.identity in done,
            "reason": run.content.reason if isinstance(run.content, Refusal) else "",
        }
        for run in runs
    ]
    reporting.result({"sweep": content.name, "runs": listed})
    return ExitCode.DONE


def _deliver(result: SweepResult, plot: PlotPlan, store: Store, reporting: Reporting) -> int:
    """Draws the plot, shows the table, and says where everything is."""
    from poseidon.output.streams import write_error
    from poseidon.sweep.outcome import RunStatus
    from poseidon.sweep.plot import write_plot
    from poseidon.sweep.result_json import result_to_json
    from poseidon.sweep.table import summary_text

    try:
        plots = write_plot(plot, result, store.directory)
    except ImportError as error:
        plots = []
        write_error(f"no plot: matplotlib can't be loaded here ({error})")
    kept = f"Rows: {result.file}" + (f"\nPlot: {', '.join(map(str, plots))}" if plots else "")
    reporting.tell(lambda stream: f"{summary_text(result, stream)}\n\n{kept}")
    reporting.result(result_to_json(result, plots))
    failed = [row["name"] for row in result.rows if row["status"] == RunStatus.ERROR]
    if failed:
        write_error(
            f"{len(failed)} of {len(result.rows)} runs failed ({failed[0]}, for one); the same command tries again"
        )
    return ExitCode.CHECK_FAILED if failed else ExitCode.DONE
