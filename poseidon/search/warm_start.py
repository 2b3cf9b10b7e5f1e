"""An earlier plan as the first incumbent: as it is, or mended to fit (after a node was lost, say)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poseidon.cost.problem import Kind, Problem
from poseidon.search.evaluate import configuration_time
from poseidon.search.result import Solution, StageChoice


@dataclass(frozen=True)
class EarlierStage:
    """A stage of an earlier plan: the name of its kind (accelerator/tpN) and its layers, chunk by chunk."""

    kind: str
    layers: tuple[int, ...]

    @property
    def accelerator(self) -> str:
        """The accelerator of the kind."""
        return self.kind.rsplit("/", 1)[0]


@dataclass(frozen=True)
class EarlierPlan:
    """What a warm start needs of a plan."""

    problem: str
    """Name of its outer choice."""
    stages: tuple[EarlierStage, ...]
    depths: tuple[int, ...] = ()


def starting_solutions(problems: Iterable[Problem], earlier: EarlierPlan) -> list[Solution]:
    """Feasible configurations that follow an earlier plan, one for each problem where there is one.

    In its own problem the plan is taken as it is where it still fits. Elsewhere, or where it no longer fits, its order
    of accelerators is
    stretched over the stages and its layers are shared out anew (problems with one chunk, fixed depths and devices of
    their own).
    """
    found = []
    for problem in problems:
        stages = _as_it_is(problem, earlier)
        depths = earlier.depths
        if stages is None:
            stages, depths = _mended(problem, earlier.stages), ()
        if stages is not None:
            found.append(Solution(problem, stages, configuration_time(problem, stages, depths), depths))
    return found


def _as_it_is(problem: Problem, earlier: EarlierPlan) -> tuple[StageChoice, ...] | None:
    names = [kind.name for kind in problem.kinds]
    kinds = [stage.kind for stage in earlier.stages]
    if problem.name != earlier.problem or len(kinds) != problem.num_stages or not set(kinds) <= set(names):
        return None
    if any(len(stage.layers) != problem.num_chunks for stage in earlier.stages):
        return None
    if sum(sum(stage.layers) for stage in earlier.stages) != problem.num_layers:
        return None
    if problem.pools or problem.allow_idle or any(kinds.count(kind.name) != kind.stages for kind in problem.kinds):
        return None
    stages = tuple(StageChoice(names.index(stage.kind), stage.layers) for stage in earlier.stages)
    return stages if _fits(problem, stages, earlier.depths) else None


def _fits(problem: Problem, stages: Sequence[StageChoice], depths: Sequence[int]) -> bool:
    """Whether every stage respects its memory limit, and whole nodes stay together where they must."""
    placed = 0
    place_of = {(place.stage, place.warmup): index for index, place in enumerate(problem.places)}
    for index, stage in enumerate(stages):
        warmup = 1 + sum(depths[index:]) if depths else problem.num_stages - index
        place = place_of.get((index, warmup))
        if place is None:
            return False
        row = problem.kinds[stage.kind].max_layers[place]
        if stage.num_layers > (row[min(placed, len(row) - 1)] if len(row) > 1 else row[0]):
            return False
        placed += stage.num_layers
    return problem.assignment == "stage" or _keeps_nodes(problem, [stage.kind for stage in stages])


def _keeps_nodes(problem: Problem, kinds: Sequence[int]) -> bool:
    index = 0
    while index < len(kinds):
        size = problem.kinds[kinds[index]].stages_per_node
        if len(set(kinds[index : index + size])) > 1 or index + size > len(kinds):
            return False
        index += size
    return True


def _mended(problem: Problem, earlier: Sequence[EarlierStage]) -> tuple[StageChoice, ...] | None:
    if problem.pools or problem.allow_idle or problem.num_chunks > 1 or problem.most_depth > 1 or problem.layer_types:
        return None
    kinds = _stretched_order(problem, earlier)
    layers = _shared_out(problem, kinds)
    return tuple(StageChoice(kind, (count,)) for kind, count in zip(kinds, layers, strict=True)) if layers else None


def _stretched_order(problem: Problem, earlier: Sequence[EarlierStage]) -> list[int]:
    """The earlier order of accelerators over the problem's stages, node by node; kinds that run out give way to the
    fullest one left.
    """
    left = [kind.stages for kind in problem.kinds]
    order: list[int] = []
    while len(order) < problem.num_stages:
        wanted = earlier[len(order) * len(earlier) // problem.num_stages].accelerator
        ready = [index for index, count in enumerate(left) if count > 0]
        same = [index for index in ready if problem.kinds[index].name.rsplit("/", 1)[0] == wanted]
        kind = same[0] if same else max(ready, key=lambda index: (left[index], -index))
        size = min(problem.kinds[kind].stages_per_node if problem.assignment == "node" else 1, left[kind])
        left[kind] -= size
        order += [kind] * size
    return order


def _shared_out(problem: Problem, kinds: Sequence[int]) -> list[int] | None:
    """Layers for each stage: one each, then each further one to the stage that stays fastest with it; None where
    memory is short.
    """
    limits = [problem.kinds[kind].max_layers[index][0] for index, kind in enumerate(kinds)]
    if min(limits) < 1 or sum(limits) < problem.num_layers:
        return None
    layers = [1] * len(kinds)
    per_layer = [_per_layer(problem.kinds[kind]) for kind in kinds]
    for _ in range(problem.num_layers - len(kinds)):
        open_ = [index for index, count in enumerate(layers) if count < limits[index]]
        chosen = min(open_, key=lambda index: ((layers[index] + 1) * per_layer[index], index))
        layers[chosen] += 1
    return layers


def _per_layer(kind: Kind) -> float:
    return kind.layers[0].forward_ms + kind.layers[0].backward_ms
