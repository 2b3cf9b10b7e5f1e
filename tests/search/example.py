"""An outer choice that can be solved by hand, used throughout the tests of this room.

Two stages, two micro-batches, three layers; kinds `fast` and `slow` fill a stage each. A layer takes 1 + 2 ms (forward
and backward) on `fast`, 2 + 4 on `slow`, and as much again for the head on the last stage; 1 ms of all-reduce a layer;
1 ms a transfer. No stage holds more than two layers. Under 1F1B the first stage runs F0 F1 B0 B1, the last F0 B0 F1 B1.

The best plan is one layer on `slow`, then two on `fast`: stages of 2 + 4 ms and 3 + 6 ms (head included).

    stage 0:  F0 0-2  F1 2-4                   B0 13-17            B1 22-26   all-reduce 26-27
    stage 1:           F0 3-6  B0 6-12  F1 12-15  B1 15-21                    all-reduce 21-23

So it takes 27 ms. All four configurations, as (kind, layers) a stage:

    slow 1, fast 2:  27 ms    the last stage has 2 x (3 + 6) to do from 3 on; then transfer, B1, all-reduce: 1 + 4 + 1
    slow 2, fast 1:  30 ms    F0 0-4, then 5-7 and 7-11 there; B0 12-20, B1 20-28 (no wait), all-reduce 2
    fast 2, slow 1:  34 ms    3 + 2 x (4 + 8) + 1 + 4 + 2
    fast 1, slow 2:  42 ms    2 + 2 x (6 + 12) + 1 + 2 + 1
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from poseidon.cost.problem import Kind, LayerCost, Problem
from poseidon.search.result import StageChoice

FAST, SLOW = 0, 1
TIMES_MS = {((SLOW, 1), (FAST, 2)): 27.0, ((SLOW, 2), (FAST, 1)): 30.0, ((FAST, 2), (SLOW, 1)): 34.0}
TIMES_MS[(FAST, 1), (SLOW, 2)] = 42.0
BEST = (StageChoice(SLOW, (1,)), StageChoice(FAST, (2,)))
BEST_MS = 27.0
NOTHING = LayerCost()
ONE_MS = ((1.0, 1.0), (1.0, 1.0))


def kind(name: str, layer: LayerCost, head: LayerCost = NOTHING, **changes: Any) -> Kind:
    """A kind that fills one stage and holds at most two layers on each of two stages."""
    fields: dict[str, Any] = {"stages": 1, "stages_per_node": 1, "first": NOTHING, "max_layers": ((2,), (2,))}
    return Kind(name, layers=(layer,), last=head, **(fields | changes))


EXAMPLE = Problem(
    name="example",
    schedule="1f1b",
    num_chunks=1,
    num_micro_batches=2,
    num_layers=3,
    num_stages=2,
    assignment="node",
    kinds=(
        kind("fast", LayerCost(1.0, 2.0, 1.0), LayerCost(1.0, 2.0)),
        kind("slow", LayerCost(2.0, 4.0, 1.0), LayerCost(2.0, 4.0)),
    ),
    intra_node_ms=ONE_MS,
    inter_node_ms=ONE_MS,
)


def chain(num_stages: int, num_layers: int, **changes: Any) -> Problem:
    """`num_stages` stages of one kind, each with room for all layers: a layer takes 1 + 2 ms, a transfer half a ms."""
    room = ((num_layers,),) * num_stages
    only = kind("only", LayerCost(1.0, 2.0), stages=num_stages, max_layers=room)
    half_ms = ((0.5,),)
    fields: dict[str, Any] = {"intra_node_ms": half_ms, "inter_node_ms": half_ms, "num_micro_batches": 4}
    problem = replace(EXAMPLE, name="chain", num_stages=num_stages, num_layers=num_layers, kinds=(only,))
    return replace(problem, **(fields | changes))


def medium_problem(num_kinds: int = 5) -> Problem:
    """Kinds of two stages each in any order: with five of them some hundred search nodes to the proof."""
    rng = random.Random(2)
    kinds = tuple(
        kind(
            f"kind {index}",
            LayerCost(rng.uniform(1, 2), rng.uniform(2, 4), rng.uniform(0, 30)),
            stages=2,
            max_layers=((6,),) * (2 * num_kinds),
        )
        for index in range(num_kinds)
    )
    times = tuple(tuple(rng.uniform(0.2, 6) for _ in kinds) for _ in kinds)
    problem = replace(EXAMPLE, name="medium", kinds=kinds, assignment="stage", num_stages=2 * num_kinds)
    problem = replace(problem, num_layers=2 * num_kinds + 6)
    return replace(problem, num_micro_batches=8, intra_node_ms=times, inter_node_ms=times)


def hard_problem() -> Problem:
    """Orders of four kinds that are nearly as good as the best without end: no search is over in 200 search nodes."""
    rng = random.Random(2)
    num_stages = 24
    kinds = tuple(
        kind(
            f"kind {index}",
            LayerCost(rng.uniform(1, 2), rng.uniform(2, 4), rng.uniform(0, 30)),
            stages=6,
            max_layers=((12,),) * num_stages,
        )
        for index in range(4)
    )
    times = tuple(tuple(rng.uniform(0.2, 6) for _ in kinds) for _ in kinds)
    problem = replace(EXAMPLE, name="hard", kinds=kinds, assignment="stage", num_stages=num_stages, num_layers=100)
    return replace(problem, num_micro_batches=36, intra_node_ms=times, inter_node_ms=times)


MEDIUM = medium_problem()
HARD = hard_problem()
