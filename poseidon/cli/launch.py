"""``poseidon launch``: takes a training command, plans, and runs it with the plan applied."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.launch_options import choices_from, launch_options
from poseidon.cli.result_options import result_options
from poseidon.cli.search import refuse

if TYPE_CHECKING:
    from poseidon.launch.choices import Choices
    from poseidon.launch.launcher import LauncherCall
    from poseidon.launch.prepare import Prepared

SCHEMA = "poseidon.launch/1"


@click.command("launch", short_help="Run a training command with its plan applied.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@launch_options
@click.option("--caught", type=click.Path(path_type=Path), hidden=True, help="Set by a shim.")
@result_options
def launch(command: tuple[str, ...], caught: Path | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """Plans for a training command and runs it with the plan's flags in place of those that contradict it.

    COMMAND is torchrun, python -m torch.distributed.launch (or .run), or a script that calls one of them, for
    Megatron-LM, MindSpeed and MindSpeed-LLM. All other flags stay as they are, in their order. What a plan can't count
    or a framework can't run is refused before anything starts. docs/launch.md has the details.

    \b
    Example:
      poseidon launch --dry-run --cluster cluster.yaml -- bash pretrain_llama.sh
      poseidon launch --cluster cluster.yaml --out runs/llama -- torchrun --nproc-per-node 8 pretrain_gpt.py ...
    """
    from poseidon.launch.choices import Choices

    if caught is not None:
        from poseidon.launch.shims import CHOICES

        return _caught(command, caught, Choices.from_text((caught / CHOICES).read_text(encoding="utf-8")))
    choices = choices_from(options, as_json=as_json, quiet=quiet)
    given, words = _environment_and_words(command)
    environment = {**os.environ, **given}
    from poseidon.launch.launcher import parsed_call

    call = parsed_call(words, environment)
    if call is not None:
        return _direct(call, given, choices)
    return _script(words, environment, choices)


def _environment_and_words(command: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Leading ``NAME=VALUE`` words set variables, as before a command in a shell."""
    given: dict[str, str] = {}
    for index, word in enumerate(command):
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            return given, tuple(command[index:])
        given[name] = value
    raise click.UsageError("a command is expected after the variables")


def _direct(call: LauncherCall, given: Mapping[str, str], choices: Choices) -> int:
    """The command is a launcher itself."""
    from poseidon.launch.view import launch_to_json, shell_command
    from poseidon.output.streams import write_out

    answer = _prepare(call, choices)
    if isinstance(answer, int):
        return answer
    result = launch_to_json(answer, given)
    if choices.dry_run:
        if not choices.as_json:
            write_out(shell_command(answer.applied.call, given))
        status = int(ExitCode.DONE)
    else:
        status = _run(answer.applied.call.words, call.environment, choices)
        result["exit_status"] = status
    _report([result], status, choices)
    return status


def _script(words: Sequence[str], environment: Mapping[str, str], choices: Choices) -> int:
    """The command starts launchers somewhere inside: they are caught on the PATH."""
    from poseidon.launch.shims import shims
    from poseidon.output.streams import write_error, write_out

    with shims(choices) as caught:
        status = _run(words, caught.environment(environment), choices)
        caught.wait()
        results = caught.results()
    refused = [int(result["refused"]) for result in results if "refused" in result]
    results = [result for result in results if "refused" not in result]
    if refused and status == 0:
        status = refused[0]  # a pipe into tee hides it
    if not results and not refused:
        name = " ".join(words[:2])
        message = f"{name}: called no torchrun or torch.distributed.launch that trains a model, so nothing was planned"
        write_error(f'{message} (docs/launch.md, "What is caught")')
        if choices.dry_run and status == 0:
            return ExitCode.BAD_INPUT
    elif results and choices.dry_run and not choices.as_json:
        write_out("\n".join(result["shell"] for result in results))
    if results or not refused:
        _report(results, status, choices)
    return status


def _caught(words: Sequence[str], directory: Path, choices: Choices) -> int:
    """A shim's launcher: planned for if it trains, left alone otherwise."""
    from poseidon.errors import PoseidonError
    from poseidon.launch.job import is_training
    from poseidon.launch.launcher import parsed_call
    from poseidon.launch.process import run_program
    from poseidon.launch.shims import held, leave_result
    from poseidon.launch.view import launch_to_json

    with held(directory):
        if not is_training(words):
            return run_program(words, os.environ)
        try:
            call = parsed_call(words, dict(os.environ))
            assert call is not None, "a shim sends launchers only"
            answer = _prepare(call, choices)
        except PoseidonError as error:
            leave_result(directory, {"refused": error.exit_code})
            raise
        except KeyboardInterrupt:
            leave_result(directory, {"refused": ExitCode.INTERRUPTED})
            raise
        if isinstance(answer, int):
            leave_result(directory, {"refused": answer})
            return answer
        result = launch_to_json(answer, {})
        leave_result(directory, result)
        if choices.dry_run:
            return ExitCode.DONE
        status = run_program(answer.applied.call.words, os.environ)
        leave_result(directory, {**result, "exit_status": status})
    return status


def _prepare(call: LauncherCall, choices: Choices) -> Prepared | int:
    """The call under its plan, shown and kept; or the exit status, where there is no plan."""
    from poseidon.launch.prepare import prepared
    from poseidon.launch.view import launch_text
    from poseidon.output.plan_file import prepare_directory, write_plan
    from poseidon.output.progress import display
    from poseidon.output.streams import write_error
    from poseidon.plan.plan import NoPlan

    out = None if choices.out is None else Path(choices.out)
    if out is not None:
        prepare_directory(out)
    with display(choices.quiet) as progress:
        answer = prepared(call, choices, progress.show)
    if isinstance(answer, NoPlan):
        return refuse(answer)
    if not choices.quiet:
        write_error(launch_text(answer, sys.stderr))
    if out is not None:
        path = write_plan(answer.plan, out)
        if not choices.quiet:
            write_error(f"Plan: {path}")
    return answer


def _run(words: Sequence[str], environment: Mapping[str, str], choices: Choices) -> int:
    """Runs the command. Its output gives way where standard output is for ours alone."""
    from poseidon.launch.process import run_program

    ours = choices.as_json or choices.dry_run
    return run_program(words, environment, sys.stderr if ours else None)


def _report(results: list[dict[str, Any]], status: int, choices: Choices) -> None:
    from poseidon.output.json_text import json_document
    from poseidon.output.streams import write_out

    if choices.as_json:
        write_out(json_document({"schema": SCHEMA, "launches": results, "exit_status": status}))
