"""What a rival planner gets and answers."""

from __future__ import annotations

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


def answer_of(task: RivalTask, best: Candidate | None, num_candidates: int, curve: Sequence[float]) -> RivalAnswer:
    """The answer of a rival that looked at so many candidates and ends with this one; timed under the DAG.

    `curve` has the seconds after which it came upon each better candidate (by its own estimate).
    """
    counters = Counters(search_nodes=num_candidates)
    solutions: tuple[Solution, ...] = ()
    choices: dict[str, OuterChoice] = {}
    warnings: tuple[str, ...] = ()
    if best is not None:
        problem = ProblemBuilder(task.experiment, task.profile).build(best.pipeline.choice)
        stages = tuple(
            StageChoice(kind, (count,)) for kind, count in zip(best.pipeline.kinds, best.layers, strict=True)
        )
        time_ms = configuration_time(problem, stages)
        solutions = (Solution(problem, stages, time_ms),)
        choices = {problem.name: best.pipeline.choice}
        counters.simulations = 1
        found_s = curve[-1] if curve else task.watch.seconds
        warnings = (
            f"chosen after {found_s:.2f} s by the policy's own formula ({best.estimate_ms:,.1f} ms), not by the time",
        )
    stopped = task.watch.stopped
    nothing = SolutionStatus.INFEASIBLE if stopped is None else SolutionStatus.UNKNOWN
    result = SearchResult(
        status=SolutionStatus.FEASIBLE if solutions else nothing,
        termination=stopped or TerminationReason.COMPLETE,
        solutions=solutions,
        lower_bound_ms=0.0,
        seconds=task.watch.seconds,
        counters=counters,
        num_problems=num_candidates,
        warnings=warnings,
        curve=tuple((seconds, solutions[0].iteration_time_ms) for seconds in curve[-1:]),
    )
    return RivalAnswer(result, choices)


def progress_of(task: RivalTask, num_candidates: int, estimate_ms: float) -> Progress:
    """What the live table shows of a rival."""
    return Progress(task.watch.seconds, estimate_ms, 0.0, num_candidates, 0, 1)
