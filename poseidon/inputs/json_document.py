"""JSON text to plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown

MAX_DEPTH = 100
"""Deepest accepted nesting of lists and mappings."""


def parse_json(text: str, file: str) -> tuple[Any, list[Mistake]]:
    """The value of a JSON document, with a mistake for each repeated key and infinite number.

    Raises InputError when the text is not valid.
    """
    repeated: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                repeated.append(key)
            result[key] = value
        return result

    try:
        data = json.loads(text, object_pairs_hook=mapping)
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(Mistake(file, "", message)) from None
    except RecursionError:
        raise InputError(Mistake(file, "", _too_deep())) from None
    except ValueError:
        raise InputError(Mistake(file, "", "has a whole number of thousands of digits")) from None
    mistakes = [Mistake(file, "", f"key {shown(key)} is given twice") for key in dict.fromkeys(repeated)]
    mistakes += _value_mistakes(data, (), file)
    return data, mistakes


def _value_mistakes(value: Any, location: tuple[str | int, ...], file: str) -> Iterator[Mistake]:
    """Numbers that are not finite; raises InputError when `value` is nested too deeply."""
    if isinstance(value, float) and not math.isfinite(value):
        yield Mistake(file, field_path(location), "is not a finite number")
    if not isinstance(value, dict | list):
        return
    if len(location) >= MAX_DEPTH:
        raise InputError(Mistake(file, "", _too_deep()))
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(child, dict | list | float):
            yield from _value_mistakes(child, (*location, key), file)


def _too_deep() -> str:
    return f"is nested too deeply: at most {MAX_DEPTH} levels are accepted"
