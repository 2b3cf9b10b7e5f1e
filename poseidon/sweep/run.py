"""Does one run: an experiment in, an outcome out, whatever happens."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from poseidon.errors import InputError, PoseidonError
from poseidon.inputs.experiment import Experiment
from poseidon.plan.plan import NoPlan, Plan
from poseidon.planner import find_plan
from poseidon.search.result import TerminationReason
from poseidon.sweep.grid import Refusal, Run
from poseidon.sweep.host import this_host
from poseidon.sweep.outcome import Outcome, RunStatus, Trouble


def do_run(run: Run) -> Outcome:
    """The outcome of a run; inputs that the planner refuses are one, too.

    Raises KeyboardInterrupt when the search was interrupted: such a run is not finished, even if it has a plan.
    """
    started_at, started, host = datetime.now(UTC), time.perf_counter(), this_host()
    answer = _answer(run.content)
    if not isinstance(answer, Trouble) and answer.search.termination is TerminationReason.INTERRUPTED:
        raise KeyboardInterrupt
    return Outcome(answer, started_at, time.perf_counter() - started, host)


def failed_outcome(reason: str, started_at: datetime, seconds: float) -> Outcome:
    """The outcome of a run whose process gave none."""
    return Outcome(Trouble(RunStatus.ERROR, reason), started_at, seconds, this_host())


def _answer(content: Experiment | Refusal) -> Plan | NoPlan | Trouble:
    if isinstance(content, Refusal):
        return Trouble(RunStatus.REFUSED, content.reason)
    try:
        return find_plan(content)
    except InputError as error:
        return Trouble(RunStatus.REFUSED, "; ".join(map(str, error.mistakes)))
    except PoseidonError as error:
        return Trouble(RunStatus.ERROR, str(error))
