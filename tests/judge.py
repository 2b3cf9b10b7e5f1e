"""Compares the search with the exhaustive search in plain Python on random small problems.

Run it where the project is installed: ``python tests/judge.py [SEED] [ROUNDS]``. Every round draws a few outer choices
from the whole space (all schedules, both assignments, kinds that share pools of devices, idle devices, mixed layer
types, limits that depend on the first layer, kinds that cannot talk to each other, equal times) and asks the search for
the best plan of each. Prints the problems of a round that went wrong, one a line, as `poseidon solve` reads them.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from poseidon.cost.problem import Kind, LayerCost, Matrix, Pool, Problem, places
from poseidon.cost.problem_file import problem_from_json, problem_to_json
from poseidon.search.options import SearchOptions
from poseidon.search.reference import all_configurations, all_depths, exhaustive_search, reference_time
from poseidon.search.result import SearchResult, Solution, SolutionStatus
from poseidon.search.solve import solve

SCHEDULES = ("1f1b", "1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b")
MOST_CONFIGURATIONS = 1500
"""Configurations of one problem; larger problems are drawn again."""
TOLERANCE = 1e-9
CRASHES = (ArithmeticError, AssertionError, LookupError, MemoryError, TypeError, ValueError, Warning)
"""What a faulty search may raise (warnings where they are errors, ``python -W error``)."""


class Draw:
    """Draws random problems; the same seed draws the same problems."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._is_whole = False

    def problems(self, number: int) -> list[Problem]:
        """One to three outer choices of one size, small enough for an exhaustive search in plain Python."""
        num_layers = self._rng.randint(2, 12)
        return [self._small(f"r{number}.{index}", num_layers) for index in range(self._rng.choice((1, 1, 2, 3)))]

    def _small(self, name: str, num_layers: int) -> Problem:
        while True:
            problem = self._problem(name, num_layers)
            configurations = (one for depths in all_depths(problem) for one in all_configurations(problem, depths))
            count = sum(1 for _ in islice(configurations, MOST_CONFIGURATIONS + 1))
            if count <= MOST_CONFIGURATIONS and (count or self._rng.random() < 0.1):
                return problem

    def _problem(self, name: str, num_layers: int) -> Problem:
        rng = self._rng
        # Whole numbers make many configurations equally fast.
        self._is_whole = rng.random() < 0.2
        schedule = rng.choice(SCHEDULES)
        num_chunks = rng.randint(2, 3) if schedule == "interleaved_1f1b" else 1
        num_types = rng.choice((1, 1, 1, 2, 3)) if num_chunks == 1 else 1
        num_stages = min(rng.choice((1, 2, 3, 4, 4, 5, 5, 6)), max(1, num_layers // num_chunks))
        most_depth = rng.randint(1, 3) if schedule == "adaptive_1f1b" else 1
        allow_idle = rng.random() < 0.3
        num_micro_batches = num_stages * rng.randint(1, 3) if num_chunks > 1 else rng.randint(1, 3 * num_stages)
        # Warm-ups that the number of micro-batches cuts to one size keep as much in memory.
        held = [(place.stage, min(place.warmup, num_micro_batches)) for place in places(num_stages, most_depth)]
        kinds = []
        for index, count in enumerate(self._counts(num_stages, allow_idle)):
            limits = {place: self._limits(num_types, num_stages, num_layers) for place in dict.fromkeys(held)}
            kinds.append(self._kind(index, count, num_types, [limits[place] for place in held]))
        pools = self._pools() if rng.random() < 0.4 else ()
        return Problem(
            name=name,
            schedule=schedule,
            num_chunks=num_chunks,
            num_micro_batches=num_micro_batches,
            num_layers=num_layers,
            num_stages=num_stages,
            assignment=rng.choice(("node", "stage")),
            kinds=tuple(self._sharing(kinds, pools)),
            intra_node_ms=self._matrix(len(kinds), 0.3, 0.0),
            inter_node_ms=self._matrix(len(kinds), 3.0, rng.choice((0.0, 0.0, 0.15))),
            layer_types=self._layer_types(num_types, num_layers),
            layer_type_names=tuple(f"type{index}" for index in range(num_types)) if num_types > 1 else ("layer",),
            pools=pools,
            allow_idle=allow_idle,
            most_depth=most_depth,
        )

    def _counts(self, num_stages: int, allow_idle: bool) -> list[int]:
        """Stages of each kind: they add up to `num_stages`, or to more where devices may stay idle."""
        rng = self._rng
        counts = [1] * rng.randint(1, min(3, num_stages))
        for _ in range(num_stages - len(counts) + (rng.randint(0, 2) if allow_idle else 0)):
            counts[rng.randrange(len(counts))] += 1
        return counts

    def _kind(self, index: int, stages: int, num_types: int, max_layers: Sequence[tuple[int, ...]]) -> Kind:
        divisors = [size for size in range(1, stages + 1) if stages % size == 0]
        return Kind(
            name=f"kind{index}",
            stages=stages,
            stages_per_node=self._rng.choice(divisors),
            layers=tuple(self._cost(3.0, 6.0, 2.0) for _ in range(num_types)),
            first=self._cost(1.0, 1.0, 1.0),
            last=self._cost(3.0, 6.0, 1.0),
            max_layers=tuple(max_layers),
        )

    def _pools(self) -> tuple[Pool, ...]:
        sizes = [self._rng.choice((1, 2, 4)) for _ in range(self._rng.randint(1, 2))]
        return tuple(Pool(f"pool{index}", size * self._rng.randint(1, 3), size) for index, size in enumerate(sizes))

    def _sharing(self, kinds: Sequence[Kind], pools: Sequence[Pool]) -> list[Kind]:
        """The kinds, most of them with devices from a pool where there are any (and as many stages as these allow)."""
        rng = self._rng
        return [
            replace(kind, pool=rng.choice(pools).name, devices=rng.choice((1, 2, 4)), stages=99)
            if pools and rng.random() < 0.8
            else kind
            for kind in kinds
        ]

    def _layer_types(self, num_types: int, num_layers: int) -> tuple[int, ...]:
        """Types in the order of their first appearance, as a problem file numbers them."""
        if num_types == 1:
            return ()
        drawn = [*range(num_types), *(self._rng.randrange(num_types) for _ in range(num_layers))]
        return tuple(drawn[:num_layers])

    def _limits(self, num_types: int, num_stages: int, num_layers: int) -> tuple[int, ...]:
        average = -(-num_layers // num_stages)
        columns = num_layers if num_types > 1 and self._rng.random() < 0.5 else 1
        return tuple(self._rng.randint(average // 2, 2 * average + 1) for _ in range(columns))

    def _cost(self, forward_ms: float, backward_ms: float, all_reduce_ms: float) -> LayerCost:
        return LayerCost(self._time(forward_ms), self._time(backward_ms), self._time(all_reduce_ms))

    def _matrix(self, size: int, most_ms: float, forbidden: float) -> Matrix:
        def cell() -> float:
            return math.inf if self._rng.random() < forbidden else self._time(most_ms)

        return tuple(tuple(cell() for _ in range(size)) for _ in range(size))

    def _time(self, most_ms: float) -> float:
        """Up to `most_ms`; now and then zero."""
        if self._rng.random() < 0.15:
            return 0.0
        return float(self._rng.randint(0, round(most_ms))) if self._is_whole else self._rng.uniform(0, most_ms)


def mistake_in(problems: Sequence[Problem], seed: int) -> str | None:
    """What the search gets wrong about these outer choices, in one sentence; None where it is right."""
    best = sorted(filter(None, map(exhaustive_search, problems)), key=lambda solution: solution.order_key)
    try:
        result = solve(problems, SearchOptions(top=len(problems), seed=seed))
    except CRASHES as crash:
        return f"the search ended with {crash!r}"
    if not best:
        return (
            None if result.status is SolutionStatus.INFEASIBLE else f"nothing fits, but the status is {result.status}"
        )
    optimum_ms = best[0].iteration_time_ms
    if result.status is not SolutionStatus.OPTIMAL:
        return f"the optimum is {optimum_ms} ms, but the status is {result.status}"
    if not _equal(result.lower_bound_ms, optimum_ms):
        return f"the optimum is {optimum_ms} ms, but the proven bound is {result.lower_bound_ms} ms"
    return _mistake_in_solutions(best, result)


def _mistake_in_solutions(best: Sequence[Solution], result: SearchResult) -> str | None:
    if len(result.solutions) != len(best):
        return f"{len(best)} outer choices have a plan, but {len(result.solutions)} plans came back"
    for expected, found in zip(best, result.solutions, strict=True):
        name, time_ms = found.problem.name, found.iteration_time_ms
        if not _equal(time_ms, expected.iteration_time_ms):
            return (
                f"{expected.problem.name} takes {expected.iteration_time_ms} ms, but {name} came back with {time_ms} ms"
            )
        if not _equal(reference_time(found.problem, found.stages, found.depths), time_ms):
            return f"the stages of {name} do not take the {time_ms} ms that came with them"
        if found.stages not in set(all_configurations(found.problem, found.depths)):
            return f"the stages of {name} break the limits"
    return None


def _equal(one_ms: float, other_ms: float) -> bool:
    return math.isclose(one_ms, other_ms, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def main(seed: int = 1, num_rounds: int = 200) -> int:
    """Judges so many rounds and returns how many went wrong."""
    started = time.perf_counter()
    ignored: list[str] = []
    # A kernel that breaks its bounds (checked build) cannot raise: Python only reports it.
    sys.unraisablehook = lambda report: ignored.append(f"{report.exc_value!r} in {report.object!r}")
    draw = Draw(seed)
    num_problems = num_wrong = 0
    for number in range(num_rounds):
        problems = [problem_from_json(problem_to_json(problem), "judge") for problem in draw.problems(number)]
        num_problems += len(problems)
        mistake = mistake_in(problems, seed) or "; ".join(ignored)
        ignored.clear()
        if mistake:
            num_wrong += 1
            print(f"round {number} of seed {seed}: {mistake}")
            print(*(json.dumps(problem_to_json(problem)) for problem in problems), sep="\n", flush=True)
    seconds = time.perf_counter() - started
    print(
        f"{num_rounds - num_wrong} of {num_rounds} rounds right ({num_problems} problems, seed {seed}, {seconds:.0f} s)"
    )
    return num_wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])) > 0)
