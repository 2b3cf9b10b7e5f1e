"""Turns tables and lines into text for whoever reads: a terminal, a pipe or a job log."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

DEFAULT_WIDTH = 120
"""Columns where there is no terminal: rich's own 80 would fold tables in job logs."""
NARROW = 100
"""Lines shorter than this have one space between columns."""
SHORTEST_NAME = 6
MOST_COLUMNS = 10_000


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at the stream as it is written; a Ray job's log may look like a terminal but is a file."""
    return stream.isatty() and "RAY_JOB_CONFIG_JSON_ENV_VAR" not in os.environ


def is_unicode(stream: TextIO) -> bool:
    """Whether lines and blocks can be drawn."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def width_of(stream: TextIO) -> int:
    """Columns of a line: COLUMNS where it is set, else the terminal's, else `DEFAULT_WIDTH`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns if is_terminal(stream) else DEFAULT_WIDTH


def console_for(stream: TextIO, file: TextIO) -> Console:
    """A console that writes to `file` what suits `stream`: its width, and colours only on a terminal."""
    terminal = is_terminal(stream)
    return Console(
        file=file, width=width_of(stream), force_terminal=terminal, no_color=None if terminal else True, highlight=False
    )


def rendered(parts: Sequence[RenderableType], stream: TextIO) -> str:
    """The parts one below the other, as text for `stream`; a table that needs more room than a line has gets it."""
    text = io.StringIO()
    console = console_for(stream, text)
    width = console.width
    for part in parts:
        needed = Measurement.get(console, console.options.update(width=MOST_COLUMNS), part).minimum
        console.width = max(width, needed) if isinstance(part, Table) else width
        console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def unbroken(line: str) -> Text:
    """A line that stays one line however narrow the stream is: a path that can be copied."""
    return Text(line, no_wrap=True)


@dataclass
class Columns:
    """A table in the house style, filled row by row.

    Numbers are never wrapped or cut; names are cut where the line is too short.
    """

    stream: TextIO
    title: str | None = None
    headers: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    rows: list[Sequence[str]] = field(default_factory=list)

    def number(self, *headers: str) -> None:
        """Adds columns of numbers, right-aligned."""
        self.headers += headers

    def name(self, *headers: str) -> None:
        """Adds columns of names (or bars), left-aligned."""
        self.headers += headers
        self.names |= set(headers)

    def row(self, *cells: str) -> None:
        """Adds a row: a cell for each column."""
        self.rows.append(cells)

    def table(self) -> Table:
        """What rich draws."""
        gap = 1 if width_of(self.stream) < NARROW or not is_unicode(self.stream) else 2
        table = Table(
            title=None if self.title is None else escape(self.title),
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD if is_unicode(self.stream) else None,
            padding=(0, gap - 1, 0, 0) if is_unicode(self.stream) else (0, gap, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style="bold",
        )
        for header, width in zip(self.headers, self._widths(gap), strict=True):
            justify: JustifyMethod = "left" if header in self.names else "right"
            table.add_column(
                escape(header), justify=justify, no_wrap=True, overflow="ellipsis", min_width=width, max_width=width
            )
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table

    def _widths(self, gap: int) -> list[int]:
        """Columns of characters: what the cells need, the widest names cut until the line is kept."""
        widths = [max(map(len, cells)) for cells in zip(self.headers, *self.rows, strict=True)]
        names = [index for index, header in enumerate(self.headers) if header in self.names]
        room = width_of(self.stream) - gap * len(widths)
        while names and sum(widths) > room:
            widest = max(names, key=lambda index: widths[index])
            if widths[widest] <= SHORTEST_NAME:
                break
            widths[widest] -= 1
        return widths
