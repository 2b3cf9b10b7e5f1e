"""Results as JSON text that every reader accepts."""

from __future__ import annotations

import json
from typing import Any


def json_line(data: Any) -> str:
    """One line; ValueError where a number is not finite."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False)


def json_document(data: dict[str, Any]) -> str:
    """A document that can be read and compared by eye: one key a line, and one entry a line in lists of mappings."""
    parts = [f"{json.dumps(key)}: {_value(value)}" for key, value in data.items()]
    return "{\n " + ",\n ".join(parts) + "\n}"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "[\n  " + ",\n  ".join(json_line(item) for item in value) + "\n ]"
    return json_line(value)
