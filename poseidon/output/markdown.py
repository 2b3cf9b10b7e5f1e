"""Tables and links of pages in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class MarkdownTable:
    """A table of a page: cells as text, columns of numbers on the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    """Columns that hold numbers, 0-based."""


def table_lines(table: MarkdownTable) -> list[str]:
    """A table's lines; what would end a cell is escaped."""
    align = ["---:" if index in table.numeric else "---" for index in range(len(table.header))]
    return [_line(table.header), _line(align), *(_line([_cell(cell) for cell in row]) for row in table.rows)]


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = "".join(character for character in heading.lower() if character.isalnum() or character in " -_")
    return kept.replace(" ", "-")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
