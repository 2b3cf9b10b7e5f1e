"""What a rival planner gets and answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.given_stages import GivenPipeline
from poseidon.cost.layout import uniform_tp
from poseidon.cost.outer import OuterChoice
from poseidon.cost.placement import AlikeNodes, alike_nodes
from poseidon.inputs.experiment import Experiment
from poseidon.profile import Profile
from poseidon.search.evaluate import configuration_time
from poseidon.search.result import (
    Counters,
    SearchResult,
    Solution,
    SolutionStatus,
    StageChoice,
    TerminationReason,
)
from poseidon.search.watch import Progress, Watch


@dataclass(frozen=True)
class RivalTask:
    """An experiment with its profile, and when to stop."""

    experiment: Experiment
    profile: Profile
    watch: Watch

    @property
    def pools(self) -> tuple[AlikeNodes, ...]:
        """The cluster's nodes in groups that are alike."""
        return alike_nodes(self.experiment.cluster)

    def allows(self, degrees: Sequence[tuple[int, int]]) -> bool:
        """Whether the experiment's restrictions allow stages of these (DP, TP)."""
        search = self.experiment.search
        if search.target == "megatron" and uniform_tp(self.experiment) and len(set(degrees)) > 1:
            return False
        if search.fixed_pp not in (None, len(degrees)):
            return False
        return all(search.fixed_dp in (None, dp) and search.fixed_tp in (None, tp) for dp, tp in degrees)


@dataclass(frozen=True)
class Candidate:
    """A pipeline that a rival would choose, with the layers of each stage and its own estimate of the time (ms)."""

    pipeline: GivenPipeline
    layers: tuple[int, ...]
    estimate_ms: float


@dataclass(frozen=True)
class RivalAnswer:
    """The search's result, with the outer choice of its solution by name."""

    result: SearchResult
    choices: dict[str, OuterChoice]


Rival = Callable[[RivalTask], RivalAnswer]


class Incumbent:
    """The best candidate so far, by the rival's own estimate; the first of equals stays."""

    def __init__(self, task: RivalTask) -> None:
        """None yet."""
        self._task = task
        self.best: Candidate | None = None
        self.num_candidates = 0
        self._found_s = 0.0

    @property
    def estimate_ms(self) -> float:
        """Of the best; infinite before the first."""
        return math.inf if self.best is None else self.best.estimate_ms

    def must_stop(self) -> bool:
        """Whether the time is up; reports the progress when that is due."""
        watch = self._task.watch
        watch.tell(lambda: Progress(watch.seconds, self.estimate_ms, 0.0, self.num_candidates, 0, 1))
        return watch.must_stop()

    def offer(self, candidate: Candidate) -> None:
        """Takes a candidate that is estimated to be faster."""
        if candidate.estimate_ms < self.estimate_ms:
            self.best, self._found_s = candidate, self._task.watch.seconds

    def answer(self) -> RivalAnswer:
        """The best as a result, timed with the DAG."""
        if self.best is None:
            stopped = self._task.watch.stopped
            status = SolutionStatus.INFEASIBLE if stopped is None else SolutionStatus.UNKNOWN
            return RivalAnswer(self._result(status, (), ()), {})
        choice = self.best.pipeline.choice
        problem = ProblemBuilder(self._task.experiment, self._task.profile).build(choice)
        pairs = zip(self.best.pipeline.kinds, self.best.layers, strict=True)
        stages = tuple(StageChoice(kind, (count,)) for kind, count in pairs)
        solution = Solution(problem, stages, configuration_time(problem, stages))
        note = (
            f"chosen after {self._found_s:.2f} s by the policy's own formula ({self.best.estimate_ms:,.1f} ms), "
            "not by the time"
        )
        return RivalAnswer(self._result(SolutionStatus.FEASIBLE, (solution,), (note,)), {problem.name: choice})

    def _result(
        self, status: SolutionStatus, solutions: tuple[Solution, ...], warnings: tuple[str, ...]
    ) -> SearchResult:
        watch = self._task.watch
        return SearchResult(
            status=status,
            termination=watch.stopped or TerminationReason.COMPLETE,
            solutions=solutions,
            lower_bound_ms=0.0,
            seconds=watch.seconds,
            counters=Counters(search_nodes=self.num_candidates, simulations=len(solutions)),
            num_problems=self.num_candidates,
            warnings=warnings,
            curve=tuple((self._found_s, solution.iteration_time_ms) for solution in solutions),
        )
