"""Runs policies one after the other on one experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from poseidon.compare.entrant import ENTRANTS, default_entrants
from poseidon.compare.entry import Entry, Refused
from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment
from poseidon.planner import find_plan
from poseidon.search.result import TerminationReason
from poseidon.search.watch import Progress


@dataclass(frozen=True)
class Comparison:
    """The entries of an experiment, in the order in which they were asked for."""

    experiment: Experiment
    entries: tuple[Entry, ...]
    interrupted: bool

    @property
    def best_ms(self) -> float | None:
        """The time of the fastest plan; None without any."""
        times = [entry.pipeline.iteration_time_ms for entry in self.entries if entry.pipeline is not None]
        return min(times, default=None)

    def slower(self, entry: Entry) -> float | None:
        """How much slower than the fastest plan an entry's is, as a fraction; None without a plan."""
        if entry.pipeline is None or self.best_ms is None:
            return None
        return entry.pipeline.iteration_time_ms / self.best_ms - 1


def compare(
    experiment: Experiment,
    names: Sequence[str] = (),
    time_limit_s: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Every named policy (`ENTRANTS`; none: the usual ones) on the experiment, each for `time_limit_s` at the most.

    A policy that does not plan what the experiment asks for is refused with its reason. Raises InputError where all
    are. After Ctrl-C the policies that are left are not begun.
    """
    entries: list[Entry] = []
    first_error: InputError | None = None
    interrupted = False
    for name in names or default_entrants(experiment):
        try:
            answer = find_plan(ENTRANTS[name].experiment(experiment, time_limit_s), report)
        except InputError as error:
            first_error = first_error or error
            entries.append(Entry(name, Refused(str(error).splitlines()[0])))
            continue
        entries.append(Entry(name, answer))
        if answer.search.termination is TerminationReason.INTERRUPTED:
            interrupted = True
            break
    if first_error is not None and all(isinstance(entry.answer, Refused) for entry in entries):
        raise first_error
    return Comparison(experiment, tuple(entries), interrupted)
