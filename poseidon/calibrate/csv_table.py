"""Rows of a CSV file as mappings: cells become numbers and truth values, empty cells are left out."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.source_file import SourceFile
from poseidon.profile.importers.text import lines_of

MAX_ROWS = 100_000
TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def read_table(source: SourceFile, columns: Collection[str]) -> list[Mapping[str, Any]]:
    """The rows of a CSV file with a header, in order; `columns` are those that it can't do without.

    Raises InputError where the file can't be read, has no header, none of the columns, a row with more cells than the
    header, or too many rows. What is no such table at all is not quoted: it may be any file.
    """
    reader = csv.DictReader(line + "\n" for line in lines_of(source.path))
    try:
        if not reader.fieldnames:
            raise _refusal(source, "is empty; a line with the names of the columns is expected")
        if not set(columns) & set(reader.fieldnames):
            raise _refusal(source, f"has none of the columns {', '.join(columns)} in its first line")
        rows: list[Mapping[str, Any]] = []
        for row in reader:
            if None in row:
                raise _refusal(source, f"line {reader.line_num} has more cells than there are columns")
            if len(rows) == MAX_ROWS:
                raise _refusal(source, f"has more than {MAX_ROWS:,} rows")
            rows.append({name: _value(cell) for name, cell in row.items() if cell})
    except csv.Error as error:
        raise _refusal(source, f"cannot be read as CSV: {error}") from None
    return rows


def _refusal(source: SourceFile, message: str) -> InputError:
    return InputError(Mistake(source.label, "", message))


def _value(cell: str) -> Any:
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            continue
    return TRUTH.get(cell.lower(), cell)
