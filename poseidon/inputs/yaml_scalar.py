"""Plain YAML scalars by the YAML 1.2 core schema (so that ``1e3`` is a number and ``no`` is text)."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_BASED_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAX_DIGITS = 1_000
"""Longer numbers count as infinite; Python itself refuses to convert much longer ones."""


def plain_scalar(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar; underscores between digits are allowed, infinite numbers come back as such."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > _MAX_DIGITS and any(form.fullmatch(text) for form in (_INTEGER, _BASED_INTEGER, _FLOAT)):
        return float("inf")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED_INTEGER.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.replace(".", ""))
    return text
