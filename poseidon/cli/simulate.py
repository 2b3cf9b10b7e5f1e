"""``poseidon simulate``: times a plan or a stages file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from poseidon.simulate import Timeline


@click.command("simulate", short_help="Time a plan or a stages file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--timeline", is_flag=True, help="Also start and end of every operation.")
@result_options
def simulate(file: Path, timeline: bool, as_json: bool, quiet: bool) -> int:
    """Times FILE, a plan.json or a stages file, as the longest path through all operations, transfers and all-reduces.

    \b
    Example:
      poseidon simulate runs/quickstart/plan.json --timeline --json
    """
    from poseidon.inputs.reading import read_document
    from poseidon.output.timeline_view import timeline_text, timeline_to_json

    simulated, peaks = _timeline(read_document(file).data, str(file))
    reporting = Reporting(as_json, quiet)
    reporting.tell(lambda stream: timeline_text(simulated, stream, operations=timeline, peak_bytes=peaks))
    reporting.result(timeline_to_json(simulated, operations=timeline, peak_bytes=peaks))
    return ExitCode.DONE


def _timeline(data: Mapping[str, Any], file: str) -> tuple[Timeline, tuple[float, ...]]:
    """What the file describes, simulated, and the stages' peak activation bytes where it has sizes."""
    from poseidon.errors import InputError, Mistake
    from poseidon.output.plan_file import plan_from_json
    from poseidon.output.plan_json import SCHEMA
    from poseidon.plan.timing import pipeline_timeline
    from poseidon.simulate import simulate as simulate_order
    from poseidon.simulate import stages_from_json

    if data.get("schema") != SCHEMA:
        stages = stages_from_json(data, file)
        try:
            simulated = simulate_order(stages.order, stages.times, transfers=stages.transfers)
        except ValueError as error:  # an order that needs transfers to be overlapped
            raise InputError(Mistake(file, "transfers", str(error))) from None
        return simulated, stages.peak_activation_bytes
    plan = plan_from_json(data, file)
    try:
        return pipeline_timeline(plan.pipeline), ()
    except ValueError as error:
        raise InputError(Mistake(file, "schedule", str(error))) from None
