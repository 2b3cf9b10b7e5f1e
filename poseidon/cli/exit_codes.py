"""What the exit status of every command means (docs/cli.md)."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit statuses; nothing else is ever returned."""

    DONE = 0
    CHECK_FAILED = 1
    """`verify` found something wrong, or a result failed our own checks."""
    BAD_INPUT = 2
    """Bad usage or bad input: every mistake on one line."""
    NO_PLAN_FITS = 3
    TIME_LIMIT = 4
    """The time (or search node) limit came before any plan."""
    INTERRUPTED = 130
