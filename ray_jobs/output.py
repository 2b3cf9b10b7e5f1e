"""Keeps Ray off the standard output, where the answer goes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

THREADS = "ray_"
"""How the names of the threads begin in which Ray prints (that a worker died, and the like), whatever it is told."""


@contextmanager
def ray_on_standard_error() -> Iterator[None]:
    """What threads of Ray print to standard output goes to standard error; everything else stays where it is."""
    before = sys.stdout
    sorted_out: Any = _SortedOut(before)
    sys.stdout = sorted_out
    try:
        yield
    finally:
        if sys.stdout is sorted_out:
            sys.stdout = before


class _SortedOut:
    """A standard output that looks at who writes."""

    def __init__(self, ours: Any) -> None:
        self._ours = ours

    def __getattr__(self, name: str) -> Any:
        is_ray = threading.current_thread().name.startswith(THREADS)
        return getattr(sys.stderr if is_ray else self._ours, name)
