"""``poseidon report``: one HTML page about a plan, its trace and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.report import Breakdown, Sensitivity, Simulated

PAGE_FILE, TRACE_FILE = "report.html", "trace.json"


@click.command("report", short_help="Write an HTML page about a plan: timeline, memory, what a change would give.")
@click.argument("file", type=click.Path(path_type=Path), metavar="PLAN")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where the files go.")
@click.option("--trace", is_flag=True, help="Also DIR/trace.json, for Perfetto (ui.perfetto.dev).")
@click.option("--plot", is_flag=True, help="Also the timeline as DIR/timeline.png and DIR/timeline.svg.")
@click.option("--all", "everything", is_flag=True, help="The same as --trace --plot.")
@click.option("--no-sensitivity", is_flag=True, help="Without the searches that tell what a change would give.")
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(0, min_open=True, max=1e8),
    metavar="S",
    help="Of each of these searches (default 5).",
)
@result_options
def report(
    file: Path,
    out: Path | None,
    trace: bool,
    plot: bool,
    everything: bool,
    no_sensitivity: bool,
    time_limit_s: float | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Writes DIR/report.html about PLAN, a plan.json or a stages file: one page that needs no network.

    For a plan it also searches what 10 % faster links, one more node or a 10 % faster accelerator would give. With
    --json and without --out nothing is written.

    \b
    Example:
      poseidon report runs/quickstart/plan.json --out runs/quickstart
      poseidon report plan.json --out report --all --no-sensitivity
    """
    from poseidon.output.plan_file import prepare_directory
    from poseidon.report import Sensitivity, break_down, summary_to_json
    from poseidon.report.text import report_text

    trace, plot = trace or everything, plot or everything
    _check_usage(out, as_json=as_json, writes_more=trace or plot)
    simulated = _simulated(file)
    if out is not None:
        prepare_directory(out)
    breakdown = break_down(simulated)
    sensitivity = None if no_sensitivity else _sensitivity(simulated, time_limit_s, quiet)
    files = [] if out is None else _write(simulated, breakdown, sensitivity, out, trace=trace, plot=plot)
    reporting = Reporting(as_json, quiet)
    reporting.tell(lambda stream: report_text(simulated, breakdown, sensitivity, files, stream))
    reporting.result(summary_to_json(simulated, breakdown, sensitivity, files))
    interrupted = isinstance(sensitivity, Sensitivity) and sensitivity.interrupted
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def _check_usage(out: Path | None, *, as_json: bool, writes_more: bool) -> None:
    if out is None and not as_json:
        raise click.UsageError("missing option '--out', which says where the report goes")
    if out is None and writes_more:
        raise click.UsageError("--trace, --plot and --all write files: give --out DIR")


def _simulated(file: Path) -> Simulated:
    """What the file describes, simulated."""
    from poseidon.inputs.reading import read_document
    from poseidon.output.plan_file import plan_from_json
    from poseidon.output.plan_json import SCHEMA
    from poseidon.report import simulated_plan, simulated_stages
    from poseidon.simulate import stages_from_json

    data = read_document(file).data
    if data.get("schema") == SCHEMA:
        return simulated_plan(plan_from_json(data, str(file)), str(file))
    return simulated_stages(stages_from_json(data, str(file)), str(file), file.name)


def _sensitivity(simulated: Simulated, time_limit_s: float | None, quiet: bool) -> Sensitivity | str | None:
    """The answers; the reason where the plan's inputs can't be searched any more; None for a stages file."""
    from poseidon.errors import InputError
    from poseidon.report.progress import announcer
    from poseidon.report.sensitivity import DEFAULT_TIME_LIMIT_S, find_sensitivity

    if simulated.plan is None:
        return None
    try:
        with announcer(quiet) as announce:
            limit_s = DEFAULT_TIME_LIMIT_S if time_limit_s is None else time_limit_s
            return find_sensitivity(simulated.plan, limit_s, announce)
    except InputError as error:
        return str(error).splitlines()[0]


def _write(
    simulated: Simulated,
    breakdown: Breakdown,
    sensitivity: Sensitivity | str | None,
    out: Path,
    *,
    trace: bool,
    plot: bool,
) -> list[Path]:
    """Writes the files; returns their paths. Their names are fixed: nothing of a plan becomes a path."""
    from poseidon.output.streams import write_error
    from poseidon.report import page_html, trace_json
    from poseidon.report.plot import write_plot
    from poseidon.whole_file import write_whole_text

    files = [out / PAGE_FILE]
    write_whole_text(files[0], page_html(simulated, breakdown, sensitivity))
    if trace:
        files.append(out / TRACE_FILE)
        write_whole_text(files[-1], trace_json(simulated))
    if plot:
        try:
            files += write_plot(simulated, out)
        except ImportError as error:
            write_error(f"no plot: matplotlib can't be loaded here ({error})")
    return files
