"""``poseidon export``: what a training framework needs to run a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.output.export import Export

FRAMEWORK_NAMES = ("megatron", "mindspeed-llm", "flagscale", "torchtitan", "hexiscale", "ms-swift", "colossalai")


@click.command("export", short_help="Write what a training framework needs to run a plan.")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--to", "framework", required=True, type=click.Choice(FRAMEWORK_NAMES), help="The framework.")
@click.option(
    "--framework-version", metavar="V", help="Its version, e.g. 0.12 for Megatron core 0.12 (default: newest)."
)
@click.option("--hosts", metavar="A,B,...", help="Host of every node of the cluster, in the order of its file.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the files go (default: a single file is printed).",
)
@result_options
def export(
    plan: Path,
    framework: str,
    framework_version: str | None,
    hosts: str | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Writes flags, files and start commands with which a framework runs PLAN, a plan.json.

    What the framework can't express is refused, with the search option that avoids it. Files, versions and limits of
    every framework: docs/export.md.

    \b
    Example:
      poseidon export runs/quickstart/plan.json --to megatron --out runs/quickstart/megatron
      poseidon export plan.json --to megatron --framework-version 0.12 --hosts gpu1,gpu2,gpu3,gpu4
    """
    from poseidon.output.export import export_plan, title_of, write_files
    from poseidon.output.export.view import export_text, export_to_json
    from poseidon.output.plan_file import read_plan

    exported = export_plan(read_plan(plan), str(plan), framework, framework_version, hosts)
    if out is None and not as_json:
        return _print_file(exported)
    written = write_files(exported.files, out) if out is not None else ()
    reporting = Reporting(as_json, quiet)
    if written:
        reporting.tell(lambda stream: export_text(title_of(framework, framework_version), exported, written, stream))
    reporting.result(export_to_json(framework, exported, written))
    return ExitCode.DONE


def _print_file(exported: Export) -> int:
    """A single file goes to standard output, as it is."""
    from poseidon.output.streams import write_out

    if len(exported.files) > 1:
        names = ", ".join(file.name for file in exported.files)
        raise click.UsageError(f"these are several files ({names}): give --out DIR (or --json)")
    write_out(exported.files[0].text.rstrip("\n"))
    return ExitCode.DONE
