"""Writes down a stage's operations step by step, counting the micro-batches of each chunk by itself."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
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
        self._pending: defaultdict[int, deque[tuple[int, Action]]] = defaultdict(deque)
        """[chunk]: weight parts whose input part has run, each with a number that says in which order they did."""
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

    def _add(self, kind: Kind, chunk: int | None) -> None:
        if kind == "W":
            self._add_weight_part(chunk)
            return
        assert chunk is not None, "only a weight part may leave its chunk open"
        counted = "F" if kind == "F" else "B", chunk
        microbatch = self._counts[counted]
        self._counts[counted] += 1
        self.actions.append(Action(kind, microbatch, chunk))
        if kind == "I":
            self._pending[chunk].append((len(self.actions), Action("W", microbatch, chunk)))

    def _add_weight_part(self, chunk: int | None) -> None:
        """The oldest one of a chunk, or of all; nothing if there is none."""
        queues = list(self._pending.values()) if chunk is None else [self._pending[chunk]]
        waiting = [queue for queue in queues if queue]
        if waiting:
            self.actions.append(min(waiting, key=lambda queue: queue[0][0]).popleft()[1])
