"""Entry points: runs a command and turns whatever happens into an exit status and one clear line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

import click

from poseidon.cli.calibrate import calibrate
from poseidon.cli.compare import compare
from poseidon.cli.costs import costs
from poseidon.cli.count import count
from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.explain import explain
from poseidon.cli.export import export
from poseidon.cli.import_profile import import_profile
from poseidon.cli.launch import launch
from poseidon.cli.paper import paper
from poseidon.cli.profile import profile
from poseidon.cli.replan import replan
from poseidon.cli.report import report
from poseidon.cli.search import search
from poseidon.cli.simulate import simulate
from poseidon.cli.solve import solve
from poseidon.cli.sweep import sweep
from poseidon.cli.validate import validate
from poseidon.cli.verify import verify
from poseidon.errors import PoseidonError

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(package_name="poseidon-planner", prog_name="poseidon")
def poseidon() -> None:
    """Finds the fastest way to train a model on a mixed cluster, and proves it.

    \b
    Example:
      poseidon search configs/experiments/quickstart.yaml --out runs/quickstart
      poseidon verify runs/quickstart/plan.json
    """


COMMANDS = (
    search,
    compare,
    verify,
    explain,
    report,
    export,
    launch,
    replan,
    simulate,
    count,
    costs,
    solve,
    sweep,
    profile,
    import_profile,
    calibrate,
    validate,
    paper,
)

for command in COMMANDS:
    poseidon.add_command(command)


def main() -> NoReturn:
    """The command ``poseidon``."""
    _exit(poseidon, "poseidon")


def main_search() -> NoReturn:
    """The command ``poseidon-search``: ``poseidon search``."""
    _exit(search, "poseidon-search")


def run(command: click.Command, name: str, arguments: Sequence[str]) -> int:
    """Runs a command with its arguments and returns the exit status; `name` is what messages call it."""
    settings: dict[str, Any] = {} if command is poseidon else CONTEXT
    try:
        status = command.main(list(arguments), prog_name=name, standalone_mode=False, **settings)
    except click.exceptions.NoArgsIsHelpError as error:
        _complain(error.format_message())
        return ExitCode.BAD_INPUT
    except click.UsageError as error:
        _complain(_usage_message(error, name))
        return ExitCode.BAD_INPUT
    except PoseidonError as error:
        _complain(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted")
        return ExitCode.INTERRUPTED
    return status if isinstance(status, int) else ExitCode.DONE


def _exit(command: click.Command, name: str) -> NoReturn:
    signal.signal(signal.SIGTERM, _interrupt)
    status = run(command, name, sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more: keep the interpreter from complaining when it flushes for the last time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:
    """A request to terminate ends the search as Ctrl-C does: the best plan so far is kept."""
    raise KeyboardInterrupt


def _usage_message(error: click.UsageError, name: str) -> str:
    path = error.ctx.command_path if error.ctx is not None else name
    message = " ".join(error.format_message().split())
    return f"{path}: {message[:1].lower()}{message[1:].rstrip('.')} (see {path} --help)"


def _complain(message: str) -> None:
    click.echo(message, err=True)
