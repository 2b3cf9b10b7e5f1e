"""ZB-1p, ZB-2p and what lies between: an order with split backwards made for given times and a memory limit.

The greedy method of the zero-bubble paper (arXiv 2401.10241, section 3.1). It says "B" for what is I here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from poseidon.schedule.action import Action, Kind
from poseidon.schedule.order import Order

_ROUNDING = 1 + 1e-9
"""Sums of memory may exceed a limit by this factor."""


@dataclass(frozen=True)
class SplitCost:
    """What one micro-batch costs a stage: milliseconds, and memory in any unit.

    `activation` is held from the forward to the input part, `kept` of it from there to the weight part. `limit` is what
    the stage may hold at once: one forward at least.
    """

    forward_ms: float
    input_ms: float
    weight_ms: float
    activation: float
    kept: float
    limit: float

    def holds(self, num_activations: int) -> bool:
        """Whether so many activations are within the limit, but for rounding."""
        return num_activations * self.activation <= self.limit * _ROUNDING


@dataclass(frozen=True)
class _Choices:
    """The three yes-or-no choices that the method leaves open; all are tried."""

    delay_first: bool
    """The warm-up may take a forward that delays the first input part."""
    skip_forwards: bool
    """A stage that is two forwards ahead of the next one may leave one out."""
    fill_short: bool
    """A weight part may fill a gap that is shorter than itself even if the stage has waited less than others."""


def automatic_order(costs: Sequence[SplitCost], num_micro_batches: int, transfer_ms: float) -> Order:
    """The order with the shortest time of its slowest stage, from its first forward to its last weight part.

    The zero-bubble paper's ZB-1p has limits of N activations on each of N stages, its ZB-2p limits of 2 N. ValueError
    where a stage cannot hold one activation.
    """
    if not all(cost.holds(1) for cost in costs):
        raise ValueError("every stage must be able to hold the activation of one micro-batch")
    attempts = (
        _Attempt(costs, num_micro_batches, transfer_ms, _Choices(*choices))
        for choices in product((True, False), repeat=3)
    )
    best = min((attempt.write() for attempt in attempts), key=lambda attempt: attempt.span_ms)
    return Order(len(costs), num_micro_batches, 1, tuple(tuple(actions) for actions in best.actions))


class _Attempt:
    """One order being written, round by round: in round i every stage runs the input part of micro-batch i.

    `clock[s]` is when stage s has run what it has so far, `gap[s]` what it has waited since its first forward.
    """

    def __init__(self, costs: Sequence[SplitCost], num_micro_batches: int, transfer_ms: float, choices: _Choices):
        self.costs, self.transfer_ms, self.choices = costs, transfer_ms, choices
        self.num_stages, self.num_micro_batches = len(costs), num_micro_batches
        self.actions: list[list[Action]] = [[] for _ in costs]
        self.clock, self.gap, self.held = [0.0] * len(costs), [0.0] * len(costs), [0.0] * len(costs)
        self.ends: dict[Kind, list[list[float]]] = {kind: [[] for _ in costs] for kind in ("F", "I", "W")}
        self.span_ms = 0.0

    def write(self) -> _Attempt:
        """Writes the whole order."""
        stages = range(self.num_stages)
        for stage in stages:
            self._put("F", stage)
        for stage, count in enumerate(self._warmup()):
            for _ in range(count):
                self._put("F", stage)
        for microbatch in range(self.num_micro_batches):
            if microbatch > 0:
                for stage in self._forwards():
                    self._make_room(stage)
                    self._fill(stage, self._arrival("F", stage))
                    self._put("F", stage)
            for stage in reversed(stages):
                self._input_part(stage)
        for stage in stages:
            while self._num_pending(stage):
                self._put("W", stage)
        starts = [self.ends["F"][stage][0] - self.costs[stage].forward_ms for stage in stages]
        self.span_ms = max(end - start for end, start in zip(self.clock, starts, strict=True))
        return self

    def _count(self, kind: Kind, stage: int) -> int:
        return len(self.ends[kind][stage])

    def _num_pending(self, stage: int) -> int:
        return self._count("I", stage) - self._count("W", stage)

    def _arrival(self, kind: Kind, stage: int) -> float:
        """When what the next operation of a kind takes is there."""
        number = self._count(kind, stage)
        if kind == "F" and stage > 0:
            return self.ends["F"][stage - 1][number] + self.transfer_ms
        if kind == "I" and stage < self.num_stages - 1:
            return self.ends["I"][stage + 1][number] + self.transfer_ms
        return 0.0

    def _put(self, kind: Kind, stage: int) -> None:
        cost = self.costs[stage]
        durations = {"F": cost.forward_ms, "I": cost.input_ms, "W": cost.weight_ms}
        sizes = {"F": cost.activation, "I": cost.kept - cost.activation, "W": -cost.kept}
        start = max(self.clock[stage], self._arrival(kind, stage))
        if self.actions[stage]:
            self.gap[stage] += start - self.clock[stage]
        self.clock[stage] = start + durations[kind]
        self.held[stage] += sizes[kind]
        self.actions[stage].append(Action(kind, self._count(kind, stage)))
        self.ends[kind][stage].append(self.clock[stage])

    def _warmup(self) -> list[int]:
        """Forwards of each stage after its first one, before its first input part: as many as time and memory allow."""
        counts = [0] * self.num_stages
        ready = self.clock[-1] + self.costs[-1].input_ms
        for stage in range(self.num_stages - 2, -1, -1):
            cost, clock, arrival = self.costs[stage], self.clock[stage], ready + self.transfer_ms
            while counts[stage] < self.num_micro_batches - 1 and cost.holds(counts[stage] + 2):
                in_time = clock < arrival if self.choices.delay_first else clock + cost.forward_ms <= arrival
                if not in_time:
                    break
                counts[stage] += 1
                clock += cost.forward_ms
            ready = max(clock, arrival) + cost.input_ms
        for stage in range(1, self.num_stages):
            if counts[stage] + 1 < self.num_micro_batches:
                counts[stage] = min(counts[stage], max(0, counts[stage - 1] - 1))
        return counts

    def _forwards(self) -> list[int]:
        """The stages that run a forward in this round; only where all later ones do, too."""
        wanted = [self._wants_forward(stage) for stage in range(self.num_stages)]
        left = [self._count("F", stage) < self.num_micro_batches for stage in range(self.num_stages)]
        first = self.num_stages
        while first > 0 and wanted[first - 1]:
            first -= 1
        return [stage for stage in range(first, self.num_stages) if left[stage]]

    def _wants_forward(self, stage: int) -> bool:
        """Whether a stage runs a forward in this round; it may skip one where it is ahead and would wait less."""
        if self._count("F", stage) >= self.num_micro_batches:
            return False
        last = stage == self.num_stages - 1
        if last or not self.choices.skip_forwards or self._count("F", stage) < self._count("F", stage + 1) + 2:
            return True
        cost, following = self.costs[stage], self.costs[stage + 1]
        due = self.clock[stage + 1] + following.forward_ms + following.input_ms + self.transfer_ms
        if self.clock[stage] >= due:
            return False
        if self.clock[stage] + cost.forward_ms + self._room_ms(stage) <= due:
            return True
        return due - self.clock[stage] > max(self.gap) - self.gap[stage]

    def _room_ms(self, stage: int) -> float:
        """Time of the weight parts that must run before another forward fits."""
        cost = self.costs[stage]
        excess = self.held[stage] + cost.activation - cost.limit * _ROUNDING
        count = 0
        while count < self._num_pending(stage) and excess > count * cost.kept:
            count += 1
        return count * cost.weight_ms

    def _make_room(self, stage: int) -> None:
        cost = self.costs[stage]
        while self.held[stage] + cost.activation > cost.limit * _ROUNDING and self._num_pending(stage):
            self._put("W", stage)

    def _fill(self, stage: int, until: float) -> None:
        """Runs weight parts while a stage would wait until then; one that takes longer only where waiting is worse."""
        weight_ms = self.costs[stage].weight_ms
        while self._num_pending(stage) and self.clock[stage] + weight_ms <= until:
            self._put("W", stage)
        wait = until - self.clock[stage]
        if self._num_pending(stage) and wait > 0:
            longest = wait > max(self.gap) - self.gap[stage]
            if longest or self.choices.fill_short:
                self._put("W", stage)

    def _input_part(self, stage: int) -> None:
        self._fill(stage, self._arrival("I", stage))
        if stage == 0 and self._count("F", 0) == self.num_micro_batches:
            # Nobody waits for the first stage's input parts, so at the end its weight parts go before them.
            while self._num_pending(0):
                self._put("W", 0)
        self._put("I", stage)
