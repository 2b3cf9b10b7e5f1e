"""The path of a field inside a document, as errors show it: ``nodes[0].devices``."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")


def field_path(location: Sequence[str | int]) -> str:
    """Joins keys with dots and indices with brackets; unusual keys are quoted, overlong ones cut."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            text = ascii(part)
            path += f"[{text if len(text) <= 60 else text[:57] + '...'}]"
    return path
