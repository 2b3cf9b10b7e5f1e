"""Writes to standard output and standard error; stays silent when nobody reads any more."""

from __future__ import annotations

import os
import re
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


_STYLE = r"\x1b\[[0-9;]*m"
"""Colours and weights: what rich puts around words on a terminal."""
_CONTROLS = re.compile(rf"({_STYLE})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Text that can't move a terminal's cursor, change its title or turn the direction of its lines.

    Names come from files that others wrote. Control codes become what JSON writes for them: results stay the same data.
    """
    return text if text.isascii() and text.isprintable() else _CONTROLS.sub(_spelt_out, text)


def _spelt_out(match: re.Match[str]) -> str:
    return match[1] or f"\\u{ord(match[0]):04x}"


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    printable = harmless(text).encode(encoding, errors="replace").decode(encoding)
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
