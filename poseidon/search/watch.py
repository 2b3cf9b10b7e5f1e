"""When to stop, and whom to tell: the clock, the limits and the progress of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from poseidon.search.result import TerminationReason


@dataclass(frozen=True)
class Progress:
    """How far a search is: what the live table shows."""

    seconds: float
    best_ms: float
    """Time of the best plan so far; infinite before the first."""
    lower_bound_ms: float
    search_nodes: int
    problems_done: int
    problems: int


class Watch:
    """Tells a search when its time is up and passes its progress on, at most a few times a second."""

    def __init__(
        self,
        time_limit_s: float | None = None,
        report: Callable[[Progress], None] | None = None,
        interval_s: float = 0.1,
    ) -> None:
        """`report` is called with a `Progress` every `interval_s` seconds at the most."""
        self._started = time.perf_counter()
        self._time_limit_s = time_limit_s
        self._report = report
        self._interval_s = interval_s
        self._next_report = 0.0
        self.stopped: TerminationReason | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self._started

    def must_stop(self) -> bool:
        """Whether the time limit is over (or a stop was asked for)."""
        if self.stopped is None and self._time_limit_s is not None and self.seconds >= self._time_limit_s:
            self.stopped = TerminationReason.TIME_LIMIT
        return self.stopped is not None

    def interrupt(self) -> None:
        """Ends the search at the next opportunity, with what it has."""
        self.stopped = TerminationReason.INTERRUPTED

    def tell(self, progress: Callable[[], Progress]) -> None:
        """Reports progress when it is due; `progress` is only worked out then."""
        if self._report is not None and self.seconds >= self._next_report:
            self._next_report = self.seconds + self._interval_s
            self._report(progress())
