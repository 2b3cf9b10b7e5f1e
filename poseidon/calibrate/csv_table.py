"""Rows of a CSV file as mappings: cells become numbers and truth values, empty cells are left out."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.source_file import SourceFile

MAX_ROWS = 100_000
TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def read_table(source: SourceFile) -> list[Mapping[str, Any]]:
    """The rows of a CSV file with a header, in order.

    Raises InputError where the file can't be read, has no header or a row with more cells than it, or too many rows.
    """
    try:
        with source.path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            if not reader.fieldnames:
                raise InputError(
                    Mistake(source.label, "", "is empty; a line with the names of the columns is expected")
                )
            rows: list[Mapping[str, Any]] = []
            for row in reader:
                if None in row:
                    message = f"line {reader.line_num} has more cells than there are columns"
                    raise InputError(Mistake(source.label, "", message))
                if len(rows) == MAX_ROWS:
                    raise InputError(Mistake(source.label, "", f"has more than {MAX_ROWS:,} rows"))
                rows.append({name: _value(cell) for name, cell in row.items() if cell})
    except FileNotFoundError:
        raise InputError(Mistake(source.label, "", "no such file")) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(Mistake(source.label, "", f"cannot be read as CSV: {error}")) from None
    return rows


def _value(cell: str) -> Any:
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            continue
    return TRUTH.get(cell.lower(), cell)
