"""Checks unchecked data against a record class and words every problem for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import PROBLEM, FileModel, nearest, shown
from poseidon.inputs.limits import MAX_MISTAKES

Record = TypeVar("Record", bound=FileModel)

_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "tuple_type": "a list",
}


def validate(model_class: type[Record], data: Any, file: str, prefix: Sequence[str | int] = ()) -> Record:
    """The record that `data` describes.

    `file` names the document and `prefix` the place of `data` in it. Raises InputError with every mistake found.
    """
    try:
        return model_class.model_validate(data)
    except ValidationError as error:
        details = _without_echoes(error.errors(include_url=False))
    mistakes = [_mistake(item, file, prefix) for item in details[:MAX_MISTAKES]]
    if len(details) > MAX_MISTAKES:
        mistakes.append(Mistake(file, field_path(prefix), f"and {len(details) - MAX_MISTAKES} more mistakes"))
    raise InputError(mistakes)


def _without_echoes(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leaves out that a list is too short where the reason is that its entries are wrong."""
    places = {item["loc"][:length] for item in details for length in range(len(item["loc"]))}
    return [item for item in details if item["type"] != "too_short" or item["loc"] not in places]


def _mistake(item: ErrorDetails, file: str, prefix: Sequence[str | int]) -> Mistake:
    location = [*prefix, *item["loc"]]
    if location and location[-1] == "[key]":
        return Mistake(file, field_path(location[:-2]), f"{shown(item['input'])} is not a name: {_message(item)}")
    return Mistake(file, field_path(location), _message(item))


def _message(item: ErrorDetails) -> str:
    kind, value, context = item["type"], shown(item["input"]), item.get("ctx", {})
    if kind == PROBLEM:
        return str(context["message"])
    if kind == "missing":
        return "is missing"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, got {_described(item['input'])}"
    if kind == "literal_error":
        return _unknown_choice(item["input"], str(context["expected"]))
    return _range_message(kind, value, context) or _text_message(kind, context) or f"{item['msg']}, got {value}"


def _range_message(kind: str, value: str, context: Mapping[str, Any]) -> str | None:
    match kind:
        case "greater_than_equal":
            return f"{value} is too small: at least {_number(context['ge'])} is accepted"
        case "greater_than":
            return f"{value} is too small: more than {_number(context['gt'])} is accepted"
        case "less_than_equal":
            return f"{value} is too large: at most {_number(context['le'])} is accepted"
        case "less_than":
            return f"{value} is too large: less than {_number(context['lt'])} is accepted"
        case "too_short":
            return f"has {context['actual_length']} entries: at least {context['min_length']} is accepted"
        case "too_long":
            return f"has more entries than accepted: at most {context['max_length']}"
    return None


def _text_message(kind: str, context: Mapping[str, Any]) -> str | None:
    match kind:
        case "string_too_short":
            return "is empty: some text is expected"
        case "string_too_long":
            return f"is too long: at most {context['max_length']} characters are accepted"
        case "string_pattern_mismatch" | "string_unicode":
            return "has characters that cannot be printed"
    return None


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,.15g}"


def _described(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"the text {shown(value)}" if isinstance(value, str) else shown(value)


def _unknown_choice(value: object, expected: str) -> str:
    choices = [choice.strip(" '") for choice in expected.replace(" or ", ",").split(",")]
    suggestion = nearest(value, choices) if isinstance(value, str) else None
    hint = f"did you mean {suggestion!r}? " if suggestion else ""
    return f"{shown(value)} is not known; {hint}accepted: {', '.join(choices)}"
