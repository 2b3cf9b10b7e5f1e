"""JSON text to plain data."""

from __future__ import annotations

import json
import math
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.limits import MAX_DEPTH, MAX_MISTAKES, MAX_VALUES


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
    mistakes = [
        Mistake(file, "", f"key {shown(key)} is given twice") for key in list(dict.fromkeys(repeated))[:MAX_MISTAKES]
    ]
    walk = _Walk(file)
    walk.visit(data, ())
    return data, mistakes + walk.mistakes


class _Walk:
    """Looks at all values of a document."""

    def __init__(self, file: str) -> None:
        self.mistakes: list[Mistake] = []
        self._file = file
        self._num_values = 0

    def visit(self, value: Any, location: tuple[str | int, ...]) -> None:
        """Notes numbers that are not finite; raises InputError on too many values or too deep nesting."""
        if isinstance(value, float) and not math.isfinite(value):
            if len(self.mistakes) >= MAX_MISTAKES:
                raise InputError([*self.mistakes, Mistake(self._file, "", "and more mistakes")])
            self.mistakes.append(Mistake(self._file, field_path(location), "is not a finite number"))
        if not isinstance(value, dict | list):
            return
        self._num_values += len(value)
        if self._num_values > MAX_VALUES:
            raise InputError(Mistake(self._file, "", f"has more than {MAX_VALUES:,} values"))
        if len(location) >= MAX_DEPTH:
            raise InputError(Mistake(self._file, "", _too_deep()))
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(child, dict | list | float):
                self.visit(child, (*location, key))


def _too_deep() -> str:
    return f"is nested too deeply: at most {MAX_DEPTH} levels are accepted"
