"""``poseidon replan``: a new plan after nodes were lost or added, and what moves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.plan import NoPlan
    from poseidon.replan.replan import Refused, Replanned

MOVES_FILE = "moves.json"


def fraction(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """``0.01`` or ``1%`` as a fraction, from 0 to below 1."""
    text = value.strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise click.BadParameter(f"{text[:40]!r} is not a fraction from 0 to below 1, such as 0.01 or 1%")
    return number


@click.command("replan", short_help="Plan anew after nodes were lost or added, and say what moves.")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--lost",
    multiple=True,
    metavar="NODE",
    help="What is gone: node3 (counted from 0 in the order of the cluster file), node3:2 (two devices of it), "
    "node3/0+5 (its devices 0 and 5); several with commas, or repeated.",
)
@click.option(
    "--added",
    multiple=True,
    metavar="NxTYPE",
    help="What is new: 2xA100 (two nodes like the cluster's), 2xA100:4 (with four devices each); several with commas, "
    "or repeated.",
)
@click.option(
    "--accelerator",
    "accelerators",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Accelerator file of an added type, which is called as the file; repeatable.",
)
@click.option(
    "--tolerance",
    callback=fraction,
    default="0",
    metavar="F",
    help="Take a plan that is slower by up to this part (0.01 or 1%) if fewer bytes move for it (default 0).",
)
@click.option("--allow-idle", is_flag=True, help="Devices may stay unused.")
@click.option(
    "--global-batch-size", type=click.IntRange(1), metavar="G", help="Sequences of one iteration from now on."
)
@click.option("--time-limit", "time_limit_s", type=click.FloatRange(0, min_open=True), metavar="S", help="Seconds.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write DIR/plan.json and DIR/moves.json.")
@result_options
def replan(
    plan: Path,
    lost: tuple[str, ...],
    added: tuple[str, ...],
    accelerators: tuple[Path, ...],
    tolerance: float,
    allow_idle: bool,
    global_batch_size: int | None,
    time_limit_s: float | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Finds the best plan of PLAN's model on its cluster after nodes were lost or added.

    Says which layers and shards each device keeps, receives from which survivor, or must load from a checkpoint.

    \b
    Examples:
      poseidon replan runs/288/plan.json --lost node3 --out runs/287
      poseidon replan plan.json --lost node0:2 --added 2xA100 --tolerance 1%
    """
    from poseidon.output.plan_file import prepare_directory, read_plan
    from poseidon.plan.sound import require_sound
    from poseidon.replan.added import additions
    from poseidon.replan.lost import lost_devices
    from poseidon.replan.new_cluster import Wishes, remaining_nodes
    from poseidon.replan.replan import Replanned
    from poseidon.replan.replan import replan as replanned

    if not lost and not added:
        raise click.UsageError("say what has changed: --lost node3, --added 2xTYPE")
    old = read_plan(plan)
    require_sound(old, str(plan))
    cluster = old.experiment.cluster
    gone, addition = lost_devices(lost, cluster), additions(added, accelerators, cluster)
    if out is not None:
        prepare_directory(out)
    wishes = Wishes(allow_idle, global_batch_size, time_limit_s)
    answer = replanned(old, remaining_nodes(old.experiment, gone, addition), addition, wishes, tolerance)
    if isinstance(answer, Replanned):
        return _deliver(answer, out, Reporting(as_json, quiet))
    return _refuse(answer)


def _deliver(answer: Replanned, out: Path | None, reporting: Reporting) -> int:
    from poseidon.output.json_text import json_document
    from poseidon.output.plan_file import write_plan
    from poseidon.output.plan_json import plan_to_json
    from poseidon.replan.to_json import moves_to_json
    from poseidon.replan.view import replanned_text
    from poseidon.search.result import TerminationReason
    from poseidon.whole_file import write_whole_text

    moves = moves_to_json(answer)
    kept = "Nothing is kept: add --out DIR to write plan.json and moves.json."
    if out is not None:
        path = write_plan(answer.new, out)
        write_whole_text(out / MOVES_FILE, json_document(moves) + "\n")
        kept = f"Plan: {path}\nMoves: {out / MOVES_FILE}"
    reporting.tell(lambda stream: f"{replanned_text(answer, stream)}\n{kept}")
    reporting.result({"plan": plan_to_json(answer.new), "moves": moves})
    interrupted = answer.new.search.termination is TerminationReason.INTERRUPTED
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def _refuse(answer: Refused | NoPlan) -> int:
    from poseidon.output.streams import write_error
    from poseidon.plan import NoPlan
    from poseidon.replan.remedies import remedies
    from poseidon.search.result import TerminationReason

    if isinstance(answer, NoPlan):
        write_error(answer.reason)
        interrupted = answer.search.termination is TerminationReason.INTERRUPTED
        return ExitCode.INTERRUPTED if interrupted else ExitCode.TIME_LIMIT
    helpful = [] if answer.experiment is None else list(remedies(answer.experiment))
    reason = answer.reason.rstrip(".")
    write_error(f"{reason}. There is a plan with {', or '.join(helpful)}." if helpful else f"{reason}.")
    return ExitCode.NO_PLAN_FITS
