"""What a search answers: what is known about the plan, apart from why the search stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from poseidon.cost.problem import Problem
from poseidon.search.tolerance import is_optimal, relative_gap


class SolutionStatus(StrEnum):
    """What is known about the solution."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    """Stopped before any plan was found and before it was shown that there is none."""


def status_of(best_ms: float, lower_bound_ms: float) -> SolutionStatus:
    """What a bound says of the best plan (infinite: there is none)."""
    if math.isfinite(best_ms):
        return SolutionStatus.OPTIMAL if is_optimal(best_ms, lower_bound_ms) else SolutionStatus.FEASIBLE
    return SolutionStatus.INFEASIBLE if math.isinf(lower_bound_ms) else SolutionStatus.UNKNOWN


class TerminationReason(StrEnum):
    """Why the search stopped."""

    COMPLETE = "complete"
    """Nothing is left to search."""
    GAP = "gap"
    """A plan within the gap that was asked for is proven."""
    TIME_LIMIT = "time limit"
    NODE_LIMIT = "search node limit"
    TOO_LARGE = "too many device states"
    """Some outer choice could only be bounded."""
    FAILED = "a part of the search kept failing"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class StageChoice:
    """One stage of a solution: its kind (index into the problem's kinds) and the layers of each of its chunks."""

    kind: int
    layers: tuple[int, ...]

    @property
    def num_layers(self) -> int:
        """Layers of all chunks together."""
        return sum(self.layers)


@dataclass(frozen=True)
class Solution:
    """A complete configuration of one problem and its time."""

    problem: Problem
    stages: tuple[StageChoice, ...]
    iteration_time_ms: float
    depths: tuple[int, ...] = ()
    """Depth of each link between stages (adaptive_1f1b only)."""

    @property
    def name(self) -> str:
        """Of its problem."""
        return self.problem.name

    @property
    def order_key(self) -> tuple[float, str, tuple[tuple[int, int, int, tuple[int, ...]], ...]]:
        """The declared total order: time, problem name, then stage by stage kind, warm-up, depth of the link after it
        and layers: the order in which an enumeration comes upon them, so that its parts agree on the first.
        """
        links = (*self.depths, 0) if self.depths else (0,) * len(self.stages)
        stages = tuple(
            (stage.kind, sum(links[index:]), links[index], stage.layers) for index, stage in enumerate(self.stages)
        )
        return (self.iteration_time_ms, self.problem.name, stages)


@dataclass
class Counters:
    """What a search did."""

    search_nodes: int = 0
    simulations: int = 0
    bound_alarms: int = 0
    """Search nodes whose bound was worse than their parent's: none in a correct search."""
    pruned: dict[str, int] = field(default_factory=dict)
    """Branches that were cut, by rule."""

    def prune(self, rule: str, count: int) -> None:
        """Adds to the branches cut by a rule."""
        if count:
            self.pruned[rule] = self.pruned.get(rule, 0) + count

    def add(self, other: Counters) -> None:
        """Adds what another search did."""
        self.search_nodes += other.search_nodes
        self.simulations += other.simulations
        self.bound_alarms += other.bound_alarms
        for rule, count in other.pruned.items():
            self.prune(rule, count)


@dataclass(frozen=True)
class SearchResult:
    """The answer of a search over one or several problems.

    `solutions` are the best plans, fastest first, at most one for each problem; `lower_bound_ms` holds for every
    configuration of every problem.
    """

    status: SolutionStatus
    termination: TerminationReason
    solutions: tuple[Solution, ...]
    lower_bound_ms: float
    seconds: float
    counters: Counters
    num_problems: int
    warnings: tuple[str, ...] = ()
    curve: tuple[tuple[float, float], ...] = ()
    """The best time so far: (seconds, milliseconds) at each improvement."""
    cpu_seconds: float = 0.0
    """CPU time that all workers together spent on shards."""

    @property
    def best(self) -> Solution | None:
        """The fastest plan found."""
        return self.solutions[0] if self.solutions else None

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, as a fraction of the plan's time; infinite without a plan."""
        return relative_gap(self.best.iteration_time_ms, self.lower_bound_ms) if self.best else float("inf")
