"""Writes to standard output and standard error; stays silent when nobody reads any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from poseidon.errors import InputError, Mistake


def write_out(text: str) -> None:
    """Writes text and a line end to standard output."""
    _write(sys.stdout, text)


def write_error(text: str) -> None:
    """Writes text and a line end to standard error."""
    _write(sys.stderr, text)


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    printable = text.encode(encoding, errors="replace").decode(encoding)
    try:
        stream.write(printable + "\n")
        stream.flush()
    except BrokenPipeError:
        discard(stream)
    except OSError as error:
        discard(stream)
        if stream is sys.stdout:
            raise InputError(Mistake("standard output", "", f"cannot be written: {error.strerror}")) from None


def discard(stream: TextIO) -> None:
    """Sends everything that a stream still gets to nowhere: its reader is gone."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _opened(path: Path | None) -> TextIO:
    """A file to write result lines to, standard output without a path; InputError where it can't be written."""
    if path is None:
        return sys.stdout
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(Mistake(str(path), "", f"cannot be written: {error.strerror}")) from None


def write_lines(lines: Iterable[str], path: Path | None) -> None:
    """Writes lines as they come. Stops early, without a word, when the reader of standard output is gone."""
    stream = _opened(path)
    try:
        for line in lines:
            stream.write(line + "\n")
        stream.flush()
    except BrokenPipeError:
        discard(stream)
    finally:
        if path is not None:
            stream.close()
