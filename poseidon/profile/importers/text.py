"""Text files of peers: logs line by line, and tables with a header line."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from poseidon.errors import InputError, Mistake
from poseidon.inputs.source_file import file_label

MAX_TEXT_BYTES = 2_000_000_000
"""Largest log or table: a profiler's kernel list of a long run."""
MAX_LINE = 1_000_000


def lines_of(path: Path, *, stray_bytes: bool = False) -> Iterator[str]:
    """The lines of a text file; InputError where it can't be read, is no text or has endless lines.

    With `stray_bytes` (logs: whatever processes printed) bytes that are no UTF-8 are passed over.
    """
    file = file_label(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(Mistake(file, "", "is not a regular file"))
        if status.st_size > MAX_TEXT_BYTES:
            message = (
                f"is too large: {status.st_size / 1e6:,.0f} MB; at most {MAX_TEXT_BYTES / 1e6:,.0f} MB are accepted"
            )
            raise InputError(Mistake(file, "", message))
        errors = "replace" if stray_bytes else "strict"
        with open(path, encoding="utf-8-sig", errors=errors) as stream:
            while line := stream.readline(MAX_LINE):
                if len(line) == MAX_LINE:
                    raise InputError(Mistake(file, "", f"has a line of more than {MAX_LINE:,} characters"))
                yield line.rstrip("\n")
    except FileNotFoundError:
        raise InputError(Mistake(file, "", "no such file")) from None
    except UnicodeDecodeError:
        raise InputError(Mistake(file, "", "is not a text file in UTF-8")) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(Mistake(file, "", f"cannot be read: {reason}")) from None


def rows_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The non-empty lines of a comma-separated file as (line number from 1, fields)."""
    file = file_label(path)
    reader = csv.reader(line.replace("\0", "") + "\n" for line in lines_of(path))
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise InputError(Mistake(file, f"line {reader.line_num}", f"is no comma-separated line: {error}")) from None
