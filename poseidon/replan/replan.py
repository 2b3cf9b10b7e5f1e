"""A new plan for a changed cluster, beginning from the old one, on the nodes that have most of what it needs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poseidon.cost import no_choice_error, outer_choices
from poseidon.cost.outer import recompute_modes
from poseidon.errors import InputError
from poseidon.inputs import Experiment
from poseidon.plan import NoPlan, Pipeline, Plan, Verdict
from poseidon.plan.check_layout import check_devices
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.replan.added import Addition
from poseidon.replan.holdings import Holding, Key, PieceBytes, grid_of, holdings
from poseidon.replan.moves import DeviceMoves, moves_of, transfers_ms
from poseidon.replan.new_cluster import Node, Wishes, new_experiment
from poseidon.replan.places import Device, Placed, best_places
from poseidon.search.result import status_of
from poseidon.search.tolerance import TIE, relative_gap

CANDIDATES = 8
"""Plans, each the best of its outer choice, among which a tolerance may choose."""


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
    """The best plan on the new cluster's nodes; with a tolerance, of the plans that are slower by no more than that
    fraction the one with fewest bytes to move (NoPlan: stopped before any plan was found).

    Raises InputError when the profile can't be used for the new cluster.
    """
    wishes = wishes or Wishes()
    try:
        experiment = new_experiment(old.experiment, nodes, addition, wishes)
    except InputError as error:
        return Refused("; ".join(str(mistake) for mistake in error.mistakes[:3]), None)
    found = outer_choices(experiment)
    if not found.choices:
        return Refused(_no_choice(experiment), experiment)
    top = CANDIDATES if tolerance else 1
    searched = experiment.model_copy(update={"search": experiment.search.model_copy(update={"top": top})})
    plan = find_plan(searched, start=old)
    if isinstance(plan, NoPlan):
        return Refused(plan.reason, experiment) if plan.status == "infeasible" else plan
    started = time.perf_counter()
    chooser = _Chooser(old, nodes, experiment)
    best_ms = plan.pipeline.iteration_time_ms
    limit_ms = best_ms * (1 + max(tolerance, TIE))
    candidates = [item for item in (plan.pipeline, *plan.alternatives) if item.iteration_time_ms <= limit_ms]
    chosen = min((chooser.placed(item) for item in candidates), key=lambda item: item.moved_bytes)
    new = _as_plan(plan, candidates, chosen, experiment)
    return Replanned(
        old=old,
        new=new,
        nodes=nodes,
        grid=chosen.grid,
        moves=chosen.moves,
        transfers_ms=transfers_ms(chosen.moves, experiment.cluster),
        placing_s=time.perf_counter() - started,
        num_candidates=len(candidates),
    )


def _no_choice(experiment: Experiment) -> str:
    mistakes = no_choice_error(experiment, outer_choices(experiment).refusals).mistakes
    return mistakes[0].message.removeprefix("no plan is possible: ")


@dataclass(frozen=True)
class _Candidate:
    """A pipeline on its physical nodes, with its moves."""

    original: Pipeline
    pipeline: Pipeline
    grid: int
    moves: tuple[DeviceMoves, ...]

    @property
    def moved_bytes(self) -> float:
        return sum(move.received_bytes + move.loaded_bytes for move in self.moves)


class _Chooser:
    """Puts pipelines on the nodes that have most of what they need."""

    def __init__(self, old: Plan, nodes: Sequence[Node], experiment: Experiment) -> None:
        self._old, self._experiment = old, experiment
        self._profile = load_profile(experiment, recompute=recompute_modes(experiment))
        self._now_of = {
            (node.was, was): (number, index)
            for number, node in enumerate(nodes)
            if node.was is not None
            for index, was in enumerate(node.devices)
        }

    def placed(self, pipeline: Pipeline) -> _Candidate:
        """The pipeline on its best places; the plan takes as long there."""
        grid = grid_of((self._old.pipeline, pipeline))
        kept = self._kept(grid)
        moved = best_places(pipeline, self._experiment.cluster, self._placed(pipeline, kept, grid))
        finding = check_devices(self._experiment, moved)
        assert finding.verdict is not Verdict.WRONG, finding.detail
        moves = moves_of(self._placed(moved, kept, grid), self._experiment.cluster)
        return _Candidate(pipeline, moved, grid, moves)

    def _kept(self, grid: int) -> dict[Device, Holding]:
        """What the devices that are left have, by their new names."""
        sharded = self._old.experiment.training.distributed_optimizer
        held = by_device(self._old.pipeline, holdings(self._old.pipeline, sharded=sharded, grid=grid))
        return {self._now_of[was]: holding for was, holding in held.items() if was in self._now_of}

    def _placed(self, pipeline: Pipeline, kept: Mapping[Device, Holding], grid: int) -> Placed:
        sharded = self._experiment.training.distributed_optimizer
        wanted = by_device(pipeline, holdings(pipeline, sharded=sharded, grid=grid))
        sizes = PieceBytes(self._experiment, self._profile, pipeline, grid)
        piece_bytes: dict[Device, Mapping[Key, float]] = {}
        for index, stage in enumerate(pipeline.stages):
            of_stage = sizes.of_stage(index)
            piece_bytes |= {(part.node, device): of_stage for part in stage.devices for device in part.devices}
        return Placed(kept, wanted, piece_bytes)


def by_device(pipeline: Pipeline, held: Sequence[Sequence[Holding]]) -> dict[Device, Holding]:
    """What each device holds, in the order of ranks; `held` is by stage and rank within it."""
    result: dict[Device, Holding] = {}
    for stage, ranks in zip(pipeline.stages, held, strict=True):
        devices = [(part.node, device) for part in stage.devices for device in part.devices]
        result |= dict(zip(devices, ranks, strict=True))
    return result


def _as_plan(plan: Plan, candidates: Sequence[Pipeline], chosen: _Candidate, experiment: Experiment) -> Plan:
    """The search's plan with the chosen pipeline as its own."""
    time_ms = chosen.pipeline.iteration_time_ms
    lower_bound_ms = min(plan.lower_bound_ms, time_ms)
    return replace(
        plan,
        status=status_of(time_ms, lower_bound_ms),
        pipeline=chosen.pipeline,
        lower_bound_ms=lower_bound_ms,
        gap=relative_gap(time_ms, lower_bound_ms),
        experiment=experiment,
        alternatives=tuple(item for item in candidates if item is not chosen.original),
    )
