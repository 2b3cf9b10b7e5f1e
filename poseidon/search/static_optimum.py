"""The exact optimum of a problem under Eq. 1 (`static_formula`), by dynamic programming with thresholds.

Eq. 1 is a sum over stages, plus (M - 1) times the largest t_s, plus the largest all-reduce. With a ceiling on each of
the two maxima the least sum is a dynamic program over the stage graph. Ranges of ceilings are split best first: a
pipeline whose largest t_s lies in a range costs at least the least sum under the range's upper end, plus (M - 1) times
its lower end. A pipeline that attains a smaller maximum than its ceiling settles all ceilings between the two.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from poseidon.search.arrays import Floats
from poseidon.search.result import StageChoice
from poseidon.search.space import Space
from poseidon.search.static_tables import StaticTables

MustStop = Callable[[], bool]


@dataclass(frozen=True)
class StaticOptimum:
    """A pipeline and its Eq. 1 time; `programs` dynamic programs were solved. Not proven where `is_proven` is False."""

    stages: tuple[StageChoice, ...]
    static_ms: float
    programs: int
    is_proven: bool


@dataclass(frozen=True)
class _Pipeline:
    """A pipeline with the parts of its Eq. 1 time."""

    stages: tuple[StageChoice, ...]
    sum_ms: float
    largest_ms: float
    all_reduce_ms: float


@dataclass(frozen=True, order=True)
class _Range:
    """Pipelines whose largest t_s is one of values[low] .. values[high]; `pipeline` has the least sum below the end."""

    bound_ms: float
    low: int
    high: int
    pipeline: _Pipeline = field(compare=False)


class StaticSearch:
    """Finds the optimum of one problem; `cutoff_ms` is a time to beat."""

    def __init__(self, space: Space, cutoff_ms: float = math.inf, must_stop: MustStop = lambda: False) -> None:
        """`must_stop` is asked before every dynamic program."""
        self._tables = StaticTables(space)
        self._weight = space.problem.num_micro_batches - 1
        self._num_stages = space.problem.num_stages
        self._must_stop = must_stop
        self._best_ms = cutoff_ms
        self._best: _Pipeline | None = None
        self._stopped = False
        self.programs = 0

    def run(self) -> StaticOptimum | None:
        """The optimum; None where nothing beats the time to beat."""
        floor_ms = self._tables.least_all_reduce()
        ceiling_ms = math.inf
        while not self._stopped:
            found = self._least_without_all_reduce(ceiling_ms, self._best_ms - floor_ms)
            if found is None:
                break
            ceiling_ms = found.all_reduce_ms
        if self._best is None:
            return None
        return StaticOptimum(self._best.stages, self._best_ms, self.programs, not self._stopped)

    def _least_without_all_reduce(self, ceiling_ms: float, cutoff_ms: float) -> _Pipeline | None:
        """The best sum + (M - 1) x largest t_s among pipelines whose all-reduces are all below the ceiling.

        None where that is not below the cutoff.
        """
        values = self._tables.bottlenecks()
        chosen: _Pipeline | None = None
        whole = self._solve(math.inf, ceiling_ms)
        if whole is None:
            return None
        # The largest t_s is at least the average.
        heap = [_Range(whole.sum_ms * (1 + self._weight / self._num_stages), 0, len(values) - 1, whole)]
        while heap and heap[0].bound_ms < cutoff_ms and not self._stopped:
            worst = heapq.heappop(heap)
            low, high, pipeline = worst.low, worst.high, worst.pipeline
            time_ms = pipeline.sum_ms + self._weight * pipeline.largest_ms
            if time_ms < cutoff_ms:
                chosen, cutoff_ms = pipeline, time_ms
            high = min(high, bisect_left(values, pipeline.largest_ms) - 1)
            if high < low:
                continue
            middle = (low + high) // 2
            self._push(heap, pipeline, middle + 1, high, values)
            lower = self._solve(float(values[middle]), ceiling_ms)
            if lower is not None:
                self._push(heap, lower, low, middle, values)
        return chosen

    def _push(self, heap: list[_Range], pipeline: _Pipeline, low: int, high: int, values: Floats) -> None:
        """Notes the pipelines whose largest t_s is one of values[low] .. values[high]; none sums up to less."""
        if low <= high:
            heapq.heappush(heap, _Range(pipeline.sum_ms + self._weight * float(values[low]), low, high, pipeline))

    def _solve(self, ceiling_ms: float, all_reduce_ceiling_ms: float) -> _Pipeline | None:
        """The least sum with every t_s at most one ceiling and every all-reduce below the other; notes the best."""
        self._stopped = self._stopped or self._must_stop()
        if self._stopped:
            return None
        self.programs += 1
        pipeline = _Program(self._tables, ceiling_ms, all_reduce_ceiling_ms).pipeline()
        if pipeline is not None:
            time_ms = pipeline.sum_ms + self._weight * pipeline.largest_ms + pipeline.all_reduce_ms
            if time_ms < self._best_ms:
                self._best, self._best_ms = pipeline, time_ms
        return pipeline


class _Program:
    """One dynamic program: for each state and first layer of its stage the least sum of all stages before it."""

    def __init__(self, tables: StaticTables, ceiling_ms: float, all_reduce_ceiling_ms: float) -> None:
        self._tables = tables
        self._ceiling_ms, self._all_reduce_ceiling_ms = ceiling_ms, all_reduce_ceiling_ms
        self._allowed: dict[tuple[int, int, float], Floats] = {}
        num_layers = tables.num_layers
        self._before = np.full((len(tables.states), num_layers + 1), np.inf)
        self._from_state = np.full((len(tables.states), num_layers + 1), -1, dtype=np.int32)
        self._from_layer = np.zeros((len(tables.states), num_layers + 1), dtype=np.int32)
        self._before[list(tables.first_states), 0] = 0.0
        self._end = (math.inf, -1, -1)

    def pipeline(self) -> _Pipeline | None:
        """The pipeline with the least sum; None where the ceilings allow none."""
        for number, state in enumerate(self._tables.states):
            row = self._before[number]
            if not np.isfinite(row).any():
                continue
            ends: dict[float, tuple[Floats, Floats]] = {}
            for boundary_ms, target in state.steps:
                if boundary_ms not in ends:
                    sums = row[:, None] + self._costs(state.key, boundary_ms)
                    first = sums.argmin(axis=0)
                    ends[boundary_ms] = (sums[first, np.arange(len(first))], first)
                least, first = ends[boundary_ms]
                better = least < self._before[target]
                self._before[target][better] = least[better]
                self._from_state[target][better] = number
                self._from_layer[target][better] = first[better]
            if state.is_final:
                last = row + self._costs(state.key, 0.0)[:, -1]
                first_layer = int(last.argmin())
                if last[first_layer] < self._end[0]:
                    self._end = (float(last[first_layer]), number, first_layer)
        return None if math.isinf(self._end[0]) else self._traced()

    def _costs(self, key: tuple[int, int], boundary_ms: float) -> Floats:
        """t_s of every stage that the ceilings allow."""
        at = (*key, boundary_ms)
        if at not in self._allowed:
            costs = self._tables.work[key] + boundary_ms
            refused = (costs > self._ceiling_ms) | ~(self._tables.all_reduce[key] < self._all_reduce_ceiling_ms)
            self._allowed[at] = np.where(refused, np.inf, costs)
        return self._allowed[at]

    def _traced(self) -> _Pipeline:
        sum_ms, state, first = self._end
        end, boundary_ms = self._tables.num_layers, 0.0
        stages: list[StageChoice] = []
        largest_ms = all_reduce_ms = 0.0
        while True:
            key = self._tables.states[state].key
            stages.append(StageChoice(key[0], (end - first,)))
            largest_ms = max(largest_ms, float(self._tables.work[key][first, end] + boundary_ms))
            all_reduce_ms = max(all_reduce_ms, float(self._tables.all_reduce[key][first, end]))
            before = int(self._from_state[state, first])
            if before < 0:
                return _Pipeline(tuple(reversed(stages)), sum_ms, largest_ms, all_reduce_ms)
            boundary_ms = next(ms for ms, target in self._tables.states[before].steps if target == state)
            state, first, end = before, int(self._from_layer[state, first]), first
