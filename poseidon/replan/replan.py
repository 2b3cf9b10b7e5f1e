"""A new plan for a changed cluster, beginning from the old one, on the nodes that have most of what it needs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from poseidon.cost import OuterChoice, ProblemBuilder, no_choice_error, outer_choices
from poseidon.cost.outer import recompute_modes
from poseidon.cost.problem import Problem
from poseidon.errors import InputError
from poseidon.inputs import Experiment
from poseidon.plan import NoPlan, Pipeline, Plan, assured, build_plan
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.replan.added import Addition
from poseidon.replan.candidates import Choices, like_before, solution_of
from poseidon.replan.chooser import Candidate, Chooser
from poseidon.replan.moves import DeviceMoves, transfers_ms
from poseidon.replan.nearby import can_be_split_anew, kept_most
from poseidon.replan.new_cluster import Node, Wishes, new_experiment
from poseidon.search.result import Counters, SearchResult, Solution, SolutionStatus, TerminationReason, status_of
from poseidon.search.tolerance import TIE, relative_gap

ROUNDS = 3
"""How often layers are split anew for the nodes that the last split has put them on."""


@dataclass(frozen=True)
class Refused:
    """No plan on the new cluster."""

    reason: str
    experiment: Experiment | None
    """What was searched; None where its parts do not fit together."""


@dataclass(frozen=True)
class Replanned:
    """The new plan, and what has to move for it."""

    old: Plan
    new: Plan
    nodes: tuple[Node, ...]
    """The new cluster's nodes, in order."""
    grid: int
    """Pieces that every part is cut into (`holdings`)."""
    moves: tuple[DeviceMoves, ...]
    """In the order of ranks."""
    transfers_ms: float
    """An estimate of the time that all messages take."""
    placing_s: float
    """Seconds for the assignment of nodes and the list of moves, after the search."""
    num_candidates: int
    """Plans among which the one with fewest bytes to move was chosen."""

    @property
    def kept_bytes(self) -> float:
        """What stays where it is."""
        return sum(move.kept_bytes for move in self.moves)

    @property
    def received_bytes(self) -> float:
        """What moves between devices."""
        return sum(move.received_bytes for move in self.moves)

    @property
    def loaded_bytes(self) -> float:
        """What only a checkpoint has."""
        return sum(move.loaded_bytes for move in self.moves)


def replan(
    old: Plan, nodes: tuple[Node, ...], addition: Addition, wishes: Wishes | None = None, tolerance: float = 0.0
) -> Replanned | Refused | NoPlan:
    """The best plan on the new cluster's nodes; with a tolerance, of the plans found that are slower by no more than
    that fraction the one with fewest bytes to move (NoPlan: stopped before any plan was found).

    Raises InputError when the profile can't be used for the new cluster.
    """
    wishes = wishes or Wishes()
    try:
        experiment = new_experiment(old.experiment, nodes, addition, wishes)
    except InputError as error:
        return Refused("; ".join(str(mistake) for mistake in error.mistakes[:3]), None)
    if not outer_choices(experiment).choices:
        return Refused(_no_choice(experiment), experiment)
    choices: dict[str, tuple[OuterChoice, Problem]] = {}

    def noted(choice: OuterChoice, problem: Problem) -> Problem:
        choices[choice.name] = (choice, problem)
        return problem

    # The old plan takes the place of random samples.
    searched = experiment.search.model_copy(update={"warmup_samples": 0})
    plan = find_plan(experiment.model_copy(update={"search": searched}), start=old, narrow=noted)
    if isinstance(plan, NoPlan):
        return Refused(plan.reason, experiment) if plan.status is SolutionStatus.INFEASIBLE else plan
    started = time.perf_counter()
    limit_ms = plan.pipeline.iteration_time_ms * (1 + max(tolerance, TIE))
    best = solution_of(plan.pipeline, choices[plan.pipeline.outer_choice][1])
    solutions = [best, *(like_before(old, choices, limit_ms) if tolerance else ())]
    builder = _Builder(plan, choices)
    chooser = Chooser(old, nodes, experiment)
    candidates = [_with_fewer_moves(solution, builder, chooser, limit_ms) for solution in solutions]
    chosen = min(candidates, key=lambda item: (item.moved_bytes, item.pipeline.iteration_time_ms))
    return Replanned(
        old=old,
        new=_as_plan(plan, chosen.pipeline, experiment),
        nodes=nodes,
        grid=chosen.grid,
        moves=chosen.moves,
        transfers_ms=transfers_ms(chosen.moves, experiment.cluster),
        placing_s=time.perf_counter() - started,
        num_candidates=len(candidates),
    )


def _with_fewer_moves(solution: Solution, builder: _Builder, chooser: Chooser, limit_ms: float) -> Candidate:
    """The solution on its best nodes; its layers split anew within the time limit where that moves fewer bytes."""
    best = chooser.placed(builder.pipeline(solution))
    for _ in range(ROUNDS if can_be_split_anew(solution.problem) else 0):
        other = kept_most(solution, chooser.kept_by_layer(best), limit_ms)
        if other.stages == solution.stages:
            break
        candidate = chooser.placed(builder.pipeline(other))
        if candidate.moved_bytes >= best.moved_bytes:
            break
        solution, best = other, candidate
    return best


class _Builder:
    """Makes pipelines of solutions."""

    def __init__(self, plan: Plan, choices: Choices) -> None:
        self._plan, self._choices = plan, choices
        experiment = plan.experiment
        self._builder = ProblemBuilder(experiment, load_profile(experiment, recompute=recompute_modes(experiment)))

    def pipeline(self, solution: Solution) -> Pipeline:
        """The pipeline of a solution, checked; the plan's own where it is that."""
        own = self._plan.pipeline
        choice, problem = self._choices[solution.name]
        if solution.name == own.outer_choice and solution.stages == solution_of(own, problem).stages:
            return own
        unproven = SearchResult(
            SolutionStatus.FEASIBLE, TerminationReason.COMPLETE, (solution,), 0.0, 0.0, Counters(), len(self._choices)
        )
        return assured(build_plan(self._builder, {choice.name: choice}, unproven, self._plan.search)).pipeline


def _no_choice(experiment: Experiment) -> str:
    mistakes = no_choice_error(experiment, outer_choices(experiment).refusals).mistakes
    return mistakes[0].message.removeprefix("no plan is possible: ")


def _as_plan(plan: Plan, pipeline: Pipeline, experiment: Experiment) -> Plan:
    """The search's plan with another pipeline as its own, and what is proven about that one."""
    time_ms = pipeline.iteration_time_ms
    lower_bound_ms = min(plan.lower_bound_ms, time_ms)
    return replace(
        plan,
        status=status_of(time_ms, lower_bound_ms),
        pipeline=pipeline,
        lower_bound_ms=lower_bound_ms,
        gap=relative_gap(time_ms, lower_bound_ms),
        experiment=experiment,
    )
