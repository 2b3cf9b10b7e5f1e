"""Writes down a stage's operations step by step, counting the micro-batches of each chunk by itself."""

from __future__ import annotations

from collections import Counter
from typing import cast

from poseidon.schedule.action import Action, Kind


class Steps:
    """The operations of one stage so far; `run` adds more.

    The next forward, and the next backward (B or I), of a chunk takes the chunk's next micro-batch. A weight part
    takes the oldest input part that has none yet.
    """

    def __init__(self) -> None:
        """An empty list."""
        self.actions: list[Action] = []
        self.pending: list[Action] = []
        """Weight parts whose input part has run."""
        self._counts: Counter[tuple[str, int]] = Counter()

    def run(self, pattern: str, times: int = 1) -> None:
        """Adds a pattern such as ``F0 I1 W1`` (kind and chunk; ``W`` alone: of any chunk) several times."""
        words = pattern.split()
        for _ in range(times):
            for word in words:
                self._add(cast(Kind, word[0]), int(word[1:]) if word[1:] else None)

    def num_forwards(self, chunk: int) -> int:
        """Forwards of a chunk so far."""
        return self._counts["F", chunk]

    def num_backwards(self, chunk: int) -> int:
        """Backwards of a chunk so far, whole or input parts."""
        return self._counts["B", chunk]

    def _add(self, kind: Kind, chunk: int | None) -> None:
        if kind == "W":
            waiting = (place for place, part in enumerate(self.pending) if chunk in (None, part.chunk))
            place = next(waiting, None)
            if place is not None:
                self.actions.append(self.pending.pop(place))
            return
        assert chunk is not None, "only a weight part may leave its chunk open"
        counted = "F" if kind == "F" else "B", chunk
        microbatch = self._counts[counted]
        self._counts[counted] += 1
        self.actions.append(Action(kind, microbatch, chunk))
        if kind == "I":
            self.pending.append(Action("W", microbatch, chunk))
