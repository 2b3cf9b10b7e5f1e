"""Where a command's output goes: the result for programs on standard output, everything for people beside it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Reporting:
    """The choices of `--json` and `-q`."""

    as_json: bool
    quiet: bool

    @property
    def people(self) -> TextIO:
        """The stream for people: standard output, or standard error where the result goes to standard output."""
        return sys.stderr if self.as_json else sys.stdout

    def tell(self, text: Callable[[TextIO], str]) -> None:
        """Writes text for people, made for the stream that it goes to, unless they want none."""
        from poseidon.output.streams import write_error, write_out

        if not self.quiet:
            (write_error if self.as_json else write_out)(text(self.people))

    def result(self, data: dict[str, Any]) -> None:
        """Writes the result as JSON, if it was asked for."""
        from poseidon.output.json_text import json_document
        from poseidon.output.streams import write_out

        if self.as_json:
            write_out(json_document(data))
