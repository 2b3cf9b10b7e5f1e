"""Sequences written short."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def runs(words: Sequence[str]) -> str:
    """``A*2, B`` for A, A, B: as `--with order=` and `--with layers=` take it."""
    parts = [(word, len(list(same))) for word, same in groupby(words)]
    return ", ".join(word if count == 1 else f"{word}*{count}" for word, count in parts)
