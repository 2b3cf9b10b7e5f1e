"""The part of a problem in which stages have given layers or a given order of accelerators.

Both become memory limits: a stage may hold at most its given layers, and since these add up to the model's it holds
just as many; a kind of another accelerator may hold none there.
"""

from __future__ import annotations

from dataclasses import replace

from poseidon.cost import OuterChoice
from poseidon.cost.problem import Kind, Problem
from poseidon.explain.constraint import Constraint


def narrowed(choice: OuterChoice, problem: Problem, constraint: Constraint, spare: int = 0) -> Problem | None:
    """The problem with the constraint's `layers` and `order`; None where its number of stages rules it out.

    Stages may have up to `spare` layers more than the constraint says (they then no longer have just as many).
    """
    layers: tuple[int, ...] | None = constraint.get("layers")
    if layers is not None and len(layers) != problem.num_stages:
        return None
    order = stage_order(choice, constraint.get("order"))
    if order is None and constraint.get("order") is not None:
        return None
    most = None if layers is None else tuple(count + spare for count in layers)
    kinds = tuple(
        _limited(kind, problem, most, None if order is None else [name == placement.accelerator for name in order])
        for kind, placement in zip(problem.kinds, choice.layout.placements, strict=True)
    )
    return replace(problem, kinds=kinds)


def _limited(kind: Kind, problem: Problem, most: tuple[int, ...] | None, allowed: list[bool] | None) -> Kind:
    rows = []
    for place, row in zip(problem.places, kind.max_layers, strict=True):
        limit = problem.num_layers if most is None else most[place.stage]
        limit = limit if allowed is None or allowed[place.stage] else 0
        rows.append(tuple(min(value, limit) for value in row))
    return replace(kind, max_layers=tuple(rows))


def stage_order(choice: OuterChoice, order: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The accelerator of each stage: `order` as it is, or, if it names each accelerator once, all stages of each.

    The second only where the number of stages of each accelerator is fixed (no idle devices, no TP degree of each
    stage's own). None where `order` is None or does not fit the outer choice.
    """
    if order is None:
        return None
    if len(order) == choice.num_stages:
        return order
    counts: dict[str, int] = {}
    for placement in choice.layout.placements:
        counts[placement.accelerator] = counts.get(placement.accelerator, 0) + placement.num_stages
    if not choice.layout.is_exact or sorted(order) != sorted(counts):
        return None
    return tuple(name for name in order for _ in range(counts[name]))
