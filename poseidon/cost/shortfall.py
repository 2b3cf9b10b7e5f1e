"""What binds when no plan fits in memory: which stage is short of how much, and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.costs import costs
from poseidon.cost.outer import OuterChoice, outer_choices
from poseidon.cost.placement import Placement
from poseidon.cost.problem import Kind, Problem
from poseidon.inputs.experiment import ANALYTIC, Experiment
from poseidon.profile import Profile, load_profile

MAX_ORDERS = 24
"""Orders of the kinds that are tried: all of four kinds."""


@dataclass(frozen=True)
class Shortfall:
    """The closest miss over all outer choices."""

    choice: str
    stage: int
    kind: str
    accelerator: str
    num_layers: int
    """Layers that the stage would have to hold."""
    needed_bytes: float
    """What it would take with them, the reserve included."""
    limit_bytes: float
    fitting_layers: int
    """Layers that fit on all stages together."""
    total_layers: int
    remedies: tuple[str, ...]
    """Settings with which a plan fits, each by itself (or one that combines several)."""

    @property
    def short_gb(self) -> float:
        """What the stage is short of, 1e9 bytes."""
        return (self.needed_bytes - self.limit_bytes) / 1e9

    def __str__(self) -> str:
        """The whole story in a few plain sentences."""
        needed_gb, limit_gb = self.needed_bytes / 1e9, self.limit_bytes / 1e9
        layers = f"{self.num_layers} layer{'s' if self.num_layers > 1 else ''}"
        if self.fitting_layers < self.total_layers:
            best = f"{self.fitting_layers} of {self.total_layers} layers fit at best ({self.choice})"
        else:
            best = f"some stage holds not even one layer, at best with {self.choice}"
        return (
            f"no plan fits in memory: {best}. There stage {self.stage} on {self.accelerator} would need "
            f"{needed_gb:.1f} GB for {layers}; its limit is {limit_gb:.1f} GB: it is short of {self.short_gb:.1f} GB. "
            f"{self._help()}"
        )

    def _help(self) -> str:
        if self.remedies:
            return f"A plan fits with {', or with '.join(self.remedies)}."
        return "Recomputation and smaller micro-batches are not enough: more memory or more devices are needed."


@dataclass(frozen=True)
class _Miss:
    choice: OuterChoice
    placement: Placement
    stage: int
    num_layers: int
    short_bytes: float
    fitting_layers: int


def memory_shortfall(experiment: Experiment, profile: Profile | None = None) -> Shortfall | None:
    """The closest miss; None when some arrangement of the stages does hold all layers (then memory is not what binds).

    Stages of one kind are taken to be neighbours; all orders of up to four kinds are tried.
    """
    loaded = load_profile(experiment) if profile is None else profile
    builder = ProblemBuilder(experiment, loaded)
    closest: _Miss | None = None
    for choice, problem in costs(experiment, loaded):
        miss = _closest_miss(builder, choice, problem)
        if miss is None:
            return None
        if closest is None or miss.short_bytes < closest.short_bytes:
            closest = miss
    if closest is None:
        return None
    return _described(experiment, closest, tuple(_remedies(experiment, loaded)))


def choice_shortfall(builder: ProblemBuilder, choice: OuterChoice, problem: Problem) -> Shortfall | None:
    """The closest miss of one outer choice, without remedies; None when some arrangement of its stages holds all
    layers.
    """
    miss = _closest_miss(builder, choice, problem)
    return None if miss is None else _described(builder.experiment, miss, ())


def _described(experiment: Experiment, miss: _Miss, remedies: tuple[str, ...]) -> Shortfall:
    accelerator = experiment.cluster.accelerators[miss.placement.accelerator]
    limit = accelerator.usable_memory_bytes * experiment.search.max_memory_fraction
    return Shortfall(
        choice=miss.choice.name,
        stage=miss.stage,
        kind=miss.placement.name,
        accelerator=miss.placement.accelerator,
        num_layers=miss.num_layers,
        needed_bytes=limit + miss.short_bytes,
        limit_bytes=limit,
        fitting_layers=miss.fitting_layers,
        total_layers=experiment.model.num_layers,
        remedies=remedies,
    )


def _arrangements(problem: Problem) -> Iterator[list[int]]:
    """The kind of each stage, kinds one after the other, the roomiest first to begin with.

    Where kinds are not all used, those that come first in the order are.
    """
    roomy = sorted(range(len(problem.kinds)), key=lambda kind: -_limit(problem.kinds[kind], 0, 0))
    for order in islice(permutations(roomy), MAX_ORDERS):
        stages = [kind for kind in order for _ in range(problem.kinds[kind].stages)]
        yield stages[: problem.num_stages]


def _capacity(problem: Problem, arrangement: list[int]) -> list[int]:
    """Layers that fit at each stage; in a mixed stack those of the stage's place in the stack."""
    limits, first = [], 0
    for stage, kind in enumerate(arrangement):
        limits.append(_limit(problem.kinds[kind], stage, first))
        first = min(first + max(limits[-1], problem.num_chunks), problem.num_layers - 1)
    return limits


def _limit(kind: Kind, stage: int, first: int) -> int:
    row = kind.max_layers[stage]
    return row[0] if len(row) == 1 else row[first]


def _fits(problem: Problem, limits: list[int]) -> bool:
    mixed = len(problem.layer_type_names) > 1
    enough = sum(limits) >= problem.num_layers
    # In a mixed stack a stage at the end may be left without a layer that it could hold elsewhere.
    return enough and (mixed or min(limits) >= problem.num_chunks)


def _closest_miss(builder: ProblemBuilder, choice: OuterChoice, problem: Problem) -> _Miss | None:
    best: _Miss | None = None
    for arrangement in _arrangements(problem):
        limits = _capacity(problem, arrangement)
        if _fits(problem, limits):
            return None
        miss = _miss(builder, choice, problem, arrangement, limits)
        if best is None or miss.short_bytes < best.short_bytes:
            best = miss
    return best


def _miss(
    builder: ProblemBuilder, choice: OuterChoice, problem: Problem, arrangement: list[int], limits: list[int]
) -> _Miss:
    """Hands out the layers that don't fit, each to the stage that is then short of least, and reports the worst."""
    placements = [choice.layout.placements[kind] for kind in arrangement]
    layers = [max(limit, problem.num_chunks) for limit in limits]
    needs = [_StageNeed(builder, choice, placement, stage) for stage, placement in enumerate(placements)]
    for _ in range(problem.num_layers - sum(layers)):
        stage = min(range(len(layers)), key=lambda index: needs[index].short_bytes(layers[index] + 1))
        layers[stage] += 1
    shorts = [need.short_bytes(count) for need, count in zip(needs, layers, strict=True)]
    worst = max(range(len(shorts)), key=lambda index: shorts[index])
    return _Miss(choice, placements[worst], worst, layers[worst], shorts[worst], min(sum(limits), problem.num_layers))


class _StageNeed:
    """Memory of one stage as a straight line in its layers (of the average type of the stack)."""

    def __init__(self, builder: ProblemBuilder, choice: OuterChoice, placement: Placement, stage: int) -> None:
        memory = builder.device_memory(choice, placement)
        counts = [
            builder.experiment.model.layer_types.count(name) for name in builder.experiment.model.distinct_layer_types
        ]
        held = choice.shape.warmup_forwards()[stage] / choice.num_chunks
        extras = memory.extras(stage, choice.num_stages)
        self._free = memory.free_bytes - max(part.recomputed_bytes for part in (*memory.layers, *extras))
        self._free -= sum(part.state_bytes + held * part.activation_bytes for part in extras)
        total = sum(
            count * (part.state_bytes + held * part.activation_bytes)
            for count, part in zip(counts, memory.layers, strict=True)
        )
        self._per_layer = total / sum(counts)

    def short_bytes(self, num_layers: int) -> float:
        """What it lacks to hold so many layers; negative when they fit."""
        return num_layers * self._per_layer - self._free


def _remedies(experiment: Experiment, profile: Profile) -> Iterator[str]:
    """Settings that make a plan fit, tried one by one; if none does, all together."""
    changes = list(_changes(experiment))
    helpful = [label for label, updates in changes if _holds(experiment, updates, profile)]
    if helpful or not changes:
        yield from helpful
        return
    together = {key: value for _, updates in changes for key, value in updates.items()}
    if _holds(experiment, together, profile):
        yield " and ".join(dict.fromkeys(label for label, updates in changes if updates.items() <= together.items()))


def _changes(experiment: Experiment) -> Iterator[tuple[str, dict[str, object]]]:
    training = experiment.training
    if experiment.profile == ANALYTIC:
        if training.recompute == "none":
            yield "training.recompute: selective", {"recompute": "selective"}
        if training.recompute in ("none", "selective"):
            yield "training.recompute: full", {"recompute": "full"}
        if not training.sequence_parallel:
            yield "training.sequence_parallel: true", {"sequence_parallel": True}
        if 1 not in training.micro_batch_sizes:
            yield "training.micro_batch_sizes: [1]", {"micro_batch_sizes": (1,)}
    if not training.distributed_optimizer:
        yield "training.distributed_optimizer: true", {"distributed_optimizer": True}
    if "1f1b" not in training.schedules:
        yield "training.schedules: [1f1b]", {"schedules": ("1f1b",)}


def _holds(experiment: Experiment, updates: dict[str, object], profile: Profile) -> bool:
    """Whether some choice of the changed experiment holds all layers."""
    changed = experiment.model_copy(update={"training": experiment.training.model_copy(update=updates)})
    if not outer_choices(changed).choices:
        return False
    loaded = load_profile(changed) if experiment.profile == ANALYTIC else profile
    return any(
        _fits(problem, _capacity(problem, arrangement))
        for _, problem in costs(changed, loaded)
        for arrangement in _arrangements(problem)
    )
