"""Where runs are done: the interface of all backends, and the simplest one, this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Protocol

from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import Outcome
from poseidon.sweep.run import do_run

MOST_RESUBMISSIONS = 3
"""Times that a run is begun anew after its process died; then it is a row with the status `error`."""


@dataclass(frozen=True)
class Finished:
    """A run with its outcome, and how many times it was begun."""

    run: Run
    outcome: Outcome
    attempts: int = 1


class Executor(Protocol):
    """Does runs somewhere."""

    @property
    def backend(self) -> str:
        """What rows call it."""

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """Every run with its outcome, in the order in which they end; `started` is told when one begins.

        Closing the iterator, or an exception in its consumer, ends what is still running.
        """


class InProcess:
    """One run after the other, in this process."""

    backend = "in-process"

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `Executor`. Ctrl-C ends the run that it meets without an outcome."""
        for run in runs:
            started(run)
            yield Finished(run, do_run(run))
