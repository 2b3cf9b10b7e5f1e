"""The options that every command has: `--json` and `-q`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def result_options(command: Command) -> Command:
    """Adds `--json` (`as_json`) and `-q` (`quiet`)."""
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print the result alone on standard output, all else on standard error."
    )
    quiet = click.option("-q", "--quiet", is_flag=True, help="No progress, no tables.")
    return as_json(quiet(command))
