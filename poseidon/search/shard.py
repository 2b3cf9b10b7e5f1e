"""What the driver of a search and its workers tell each other: plain values that travel between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import Problem
from poseidon.search.exact import Bounded, bound
from poseidon.search.frontier import Frontier
from poseidon.search.options import SearchOptions
from poseidon.search.result import Counters, Solution, StageChoice
from poseidon.search.space import Space, space_of


class Action(StrEnum):
    """What is to be done with an outer choice."""

    OPEN = "open"
    """Build the tables of the exact policy and try their plans."""
    SEARCH = "search"
    CHOOSE = "choose"
    """Find the one plan that every run reports among those that are equally fast (docs/algorithm.md, "Ties")."""


@dataclass(frozen=True)
class Context:
    """A whole search, as every worker must know it."""

    problems: tuple[Problem, ...]
    options: SearchOptions
    _bounded: dict[int, Bounded] = field(default_factory=dict, compare=False)
    _spaces: dict[int, Space] = field(default_factory=dict, compare=False)

    def bounded(self, problem: int) -> Bounded:
        """An outer choice (by index) laid out and bounded; raises ValueError where its schedule refuses its shape."""
        if problem not in self._bounded:
            self._bounded[problem] = bound(self.problems[problem])
        return self._bounded[problem]

    def space(self, problem: int) -> Space:
        """An outer choice (by index) with its stage graph.

        Raises ValueError where its schedule refuses its shape or it has too many device states.
        """
        if problem not in self._spaces:
            self._spaces[problem] = space_of(self.problems[problem])
        return self._spaces[problem]

    def __reduce__(self) -> tuple[type[Context], tuple[tuple[Problem, ...], SearchOptions]]:
        """What was laid out stays at home: every process does that for itself."""
        return Context, (self.problems, self.options)


@dataclass(frozen=True)
class Shard:
    """A piece of work on one outer choice, done by one worker at a time."""

    number: int
    """Its own; a shard that is sent again keeps it."""
    problem: int
    """Index into the problems of the context."""
    action: Action
    bound_ms: float
    """No plan in it is faster."""
    frontier: Frontier | None = None
    """None: the whole outer choice."""
    cutoff_ms: float = np.inf
    """The time to beat when it was sent."""
    most_nodes: int = 2**62
    """Search nodes after which the rest is handed back."""
    seconds: float = np.inf
    """The same by the clock."""
    samples: int = 0
    """Random configurations to time first."""
    most_table_values: int = 0
    """Numbers that its tables may hold."""


@dataclass(frozen=True)
class Found:
    """A plan of an outer choice (by index)."""

    problem: int
    stages: tuple[StageChoice, ...]
    iteration_time_ms: float
    depths: tuple[int, ...] = ()

    @classmethod
    def of(cls, solution: Solution, problem: int) -> Found:
        """A solution of the problem with this index."""
        return cls(problem, solution.stages, solution.iteration_time_ms, solution.depths)

    def solution(self, problems: tuple[Problem, ...]) -> Solution:
        """With the problem itself."""
        return Solution(problems[self.problem], self.stages, self.iteration_time_ms, self.depths)


Cuts = NDArray[np.int64]
"""Rows (group, last kind, layers placed, how often a branch was cut there)."""


@dataclass(frozen=True)
class Outcome:
    """What came of a shard."""

    number: int
    problem: int
    floor_ms: float = np.inf
    """No plan in what is finished is faster, or than the cutoff by more than the gap that was asked for."""
    frontier: Frontier | None = None
    """What is left; None: nothing."""
    found: Found | None = None
    counters: Counters = field(default_factory=Counters)
    table_values: int = 0
    """Numbers in the tables that were built."""
    given_up: bool = False
    """The outer choice has too many device states: its bound is all that is known."""
    cpu_seconds: float = 0.0
    """CPU time that the worker's process spent on it."""
    is_cut_short: bool = False
    """It was stopped before there was anything to hand back: all of the shard is left."""
    num_above: int = 0
    has_layer_cuts: bool = False
    """The layer rule of the paper cut some branch."""
    cuts: tuple[Cuts, Cuts] | None = None
    """Branches that the paper's rules cut, by what lay behind them."""


@dataclass(frozen=True)
class Failure:
    """A shard that did not come back."""

    number: int
    reason: str
    again: bool
    """Another try may go well: the worker was lost. Not where the search itself raised an error."""
    counts: bool = True
    """The shard may be the reason; not where its worker was lost before it began."""


Event = Found | Outcome | Failure
