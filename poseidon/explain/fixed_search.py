"""The best plan under a constraint; where there is none, what binds and which values near it have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poseidon.cost import OuterChoice, ProblemBuilder, outer_choices
from poseidon.cost.outer import recompute_modes
from poseidon.cost.problem import Problem
from poseidon.cost.shortfall import choice_shortfall
from poseidon.errors import InputError
from poseidon.explain.constraint import COUNTS, Constraint, Fixed, constrained
from poseidon.explain.first_plan import FIRST_PLAN, Example, first_plan, problems_of
from poseidon.explain.narrowing import narrowed, stage_order
from poseidon.explain.outer_choices import exact
from poseidon.inputs import Experiment
from poseidon.plan import NoPlan, Plan
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.search.result import SolutionStatus
from poseidon.search.solve import solve

MOST_TRIES = 24
"""Values of one setting that are tried, the nearest first."""


@dataclass(frozen=True)
class Infeasible:
    """No plan has what was asked for."""

    reason: str
    """What binds."""
    remedies: tuple[str, ...]
    """Values with which there is a plan, each with all else as asked for."""

    def __str__(self) -> str:
        """In one line."""
        if not self.remedies:
            return f"{self.reason}. No single change of these settings makes a plan possible."
        return f"{self.reason}. A plan is possible with {', or with '.join(self.remedies)}."


def plan_with(experiment: Experiment, constraint: Constraint, time_limit_s: float | None) -> Plan | NoPlan | Infeasible:
    """The best plan of the experiment with the settings fixed (NoPlan: the time limit came first).

    Raises InputError where the experiment's profile can't be used at all.
    """
    load_profile(experiment, recompute=recompute_modes(experiment))
    try:
        fixed = exact(constrained(experiment, constraint), 1, time_limit_s)
        plan = find_plan(fixed, narrow=lambda choice, problem: narrowed(choice, problem, constraint))
    except InputError as error:
        return Infeasible(_said(error), tuple(_remedies(experiment, constraint)))
    if isinstance(plan, Plan) or plan.status is not SolutionStatus.INFEASIBLE:
        return plan
    return Infeasible(_what_binds(fixed, constraint), tuple(_remedies(experiment, constraint)))


def _said(error: InputError) -> str:
    """The first mistake as a reason."""
    return error.mistakes[0].message.removeprefix("no plan is possible: ").rstrip(".")


def _what_binds(experiment: Experiment, constraint: Constraint) -> str:
    """Why an experiment that has outer choices has no plan under a constraint."""
    choices = problems_of(experiment)
    matching = [item for item in choices if narrowed(*item, constraint) is not None]
    if not matching:
        return _no_match(choices, constraint)
    if constraint.get("layers") or constraint.get("order"):
        reasons = [_overfull(choice, problem, constraint) for choice, problem in matching]
        return min(reasons, key=len)
    builder = ProblemBuilder(experiment, load_profile(experiment, recompute=recompute_modes(experiment)))
    misses = [choice_shortfall(builder, choice, problem) for choice, problem in matching]
    known = [miss for miss in misses if miss is not None]
    if len(known) < len(misses) or not known:
        return "all layers would find room, but in no order of stages that the assignment and the vendors allow"
    closest = min(known, key=lambda miss: miss.short_gb)
    return str(closest).split(" Recomputation and smaller")[0].rstrip(".")


def _no_match(choices: Sequence[tuple[OuterChoice, Problem]], constraint: Constraint) -> str:
    counts = sorted({problem.num_stages for _, problem in choices})
    layers, order = constraint.get("layers"), constraint.get("order")
    listed = ", ".join(map(str, counts[:12])) + (", ..." if len(counts) > 12 else "")
    if layers is not None and len(layers) not in counts:
        return f"{len(layers)} numbers of layers ask for {len(layers)} stages; there can be {listed}"
    return (
        f"an order of {len(order or ())} accelerators is neither one for each stage (there can be {listed}) "
        "nor every accelerator of the cluster once"
    )


def _overfull(choice: OuterChoice, problem: Problem, constraint: Constraint) -> str:
    """The stages that can't hold what they are asked to, of one outer choice."""
    limits, order = _room(choice, problem, constraint), stage_order(choice, constraint.get("order"))
    layers = constraint.get("layers")
    over = []
    for stage, (name, most) in enumerate(limits):
        wanted = 1 if layers is None else layers[stage]
        if wanted > most:
            over.append(f"stage {stage} of {wanted} layers, where at most {most} fit ({name})")
    if over:
        more = f" and {len(over) - 3} more stages" if len(over) > 3 else ""
        return f"{choice.name}: no memory for {', '.join(over[:3])}{more}"
    total = sum(most for _, most in limits)
    if total < problem.num_layers:
        return f"{choice.name}: in this order {total} of {problem.num_layers} layers fit at best"
    where = "in this order of accelerators" if order is not None else "in any order of stages"
    return f"{choice.name}: each stage would find room for itself, but not all of them {where}"


def _room(choice: OuterChoice, problem: Problem, constraint: Constraint) -> list[tuple[str, int]]:
    """For each stage the kind that holds most layers there, and how many."""
    free = narrowed(choice, problem, constraint.without("layers"))
    assert free is not None
    best: list[tuple[str, int]] = [("", -1)] * problem.num_stages
    for kind in free.kinds:
        for place, row in zip(problem.places, kind.max_layers, strict=True):
            if max(row) > best[place.stage][1]:
                best[place.stage] = (kind.name, max(row))
    return best


def _remedies(experiment: Experiment, constraint: Constraint) -> Iterator[str]:
    """For each setting the nearest value with which there is a plan, if there is one."""
    for item in constraint.fixed:
        rest = constraint.without(item.key)
        if item.key in COUNTS:
            found = _nearest_count(experiment, rest, item)
        elif item.key == "layers":
            found = _nearest_layers(experiment, constraint)
        else:
            example = _any_plan(experiment, rest)
            found = None if example is None else _value_of(example, item.key)
        if found is not None:
            yield str(found)


def _nearest_count(experiment: Experiment, rest: Constraint, item: Fixed) -> Fixed | None:
    wanted = item.value
    assert isinstance(wanted, int)
    values = sorted(set(_values(experiment, rest, item.key)) - {wanted}, key=lambda value: (abs(value - wanted), value))
    for value in values[:MOST_TRIES]:
        if _any_plan(experiment, rest.plus(item.key, value)) is not None:
            return Fixed(item.key, value)
    return None


def _values(experiment: Experiment, rest: Constraint, key: str) -> Iterator[int]:
    """Values that the outer choices with the other settings have."""
    try:
        free = _freed(constrained(experiment, rest), key)
    except InputError:
        return
    for choice in outer_choices(free).choices:
        match key:
            case "dp":
                yield choice.dp
            case "tp":
                yield from (placement.tp for placement in choice.layout.placements)
            case "pp":
                yield choice.num_stages
            case "micro_batch_size":
                yield choice.micro_batch_size
            case "num_chunks":
                yield choice.num_chunks


def _freed(experiment: Experiment, key: str) -> Experiment:
    """The experiment with a setting that it fixes itself left open (micro-batches: any that divides the batch)."""
    if key in ("dp", "tp", "pp"):
        return experiment.model_copy(update={"search": experiment.search.model_copy(update={f"fixed_{key}": None})})
    batch = experiment.training.global_batch_size
    options = {"micro_batch_size": ("micro_batch_sizes", 64), "num_chunks": ("num_chunks", 8)}
    name, most = options[key]
    least = 2 if key == "num_chunks" else 1
    values = tuple(value for value in range(least, most + 1) if key == "num_chunks" or batch % value == 0)
    return experiment.model_copy(update={"training": experiment.training.model_copy(update={name: values})})


def _any_plan(experiment: Experiment, constraint: Constraint) -> Example | None:
    """Some plan under a constraint."""
    try:
        fixed = constrained(experiment, constraint)
    except InputError:
        return None
    return first_plan(fixed, lambda choice, problem: narrowed(choice, problem, constraint))


def _value_of(example: Example, key: str) -> Fixed:
    choice = example.choice
    if key == "order":
        placements = choice.layout.placements
        return Fixed(key, tuple(placements[stage.kind].accelerator for stage in example.solution.stages))
    return Fixed(key, choice.recompute if key == "recompute" else choice.schedule)


def _nearest_layers(experiment: Experiment, constraint: Constraint) -> Fixed | None:
    """The layers of a plan in which no stage has more than a few layers above the given ones, as few as possible."""
    layers = constraint.get("layers")
    try:
        choices = problems_of(constrained(experiment, constraint))
    except InputError:
        return None
    for spare in range(1, experiment.model.num_layers - len(layers) + 1):
        problems = [smaller for item in choices if (smaller := narrowed(*item, constraint, spare)) is not None]
        best = solve(problems, FIRST_PLAN).best
        if best is not None:
            return Fixed("layers", tuple(stage.num_layers for stage in best.stages))
    return None
