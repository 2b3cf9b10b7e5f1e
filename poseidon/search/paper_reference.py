"""The paper's enumeration in plain Python: the twin of the compiled one. Use it on small problems only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from poseidon.cost.problem import Problem
from poseidon.search.evaluate import configuration_times
from poseidon.search.reference import Configuration, all_configurations, reference_time
from poseidon.search.tolerance import EXCESS


@dataclass
class PaperTrace:
    """What an enumeration did; `pruned_by_*` count configurations."""

    best_ms: float
    own_ms: float = math.inf
    best: Configuration | None = None
    simulations: int = 0
    pruned_by_stage: int = 0
    pruned_by_layer: int = 0


def enumerate_in_python(
    problem: Problem,
    cutoff_ms: float = math.inf,
    *,
    stage_pruning: bool = True,
    layer_pruning: bool = True,
    batch: int = 8,
) -> PaperTrace:
    """Looks at every configuration in the declared order and asks for each of its prefixes whether a rule drops it.

    A prefix is judged once, when the first configuration with it comes up; the time to beat is updated when `batch`
    configurations have been simulated. Not for adaptive_1f1b.
    """
    trace = PaperTrace(cutoff_ms)
    judge = _Judge(problem, trace, stage_pruning, layer_pruning)
    waiting: list[Configuration] = []
    ordered = sorted(all_configurations(problem), key=lambda c: [(stage.kind, stage.layers) for stage in c])
    for configuration in ordered:
        rule = judge.rule_against(configuration)
        if rule == "stage":
            trace.pruned_by_stage += 1
        elif rule == "layer":
            trace.pruned_by_layer += 1
        else:
            waiting.append(configuration)
        if len(waiting) == batch:
            _simulate(problem, trace, waiting)
    _simulate(problem, trace, waiting)
    return trace


def _simulate(problem: Problem, trace: PaperTrace, waiting: list[Configuration]) -> None:
    for configuration in waiting:
        trace.simulations += 1
        time_ms = reference_time(problem, configuration)
        if time_ms <= trace.best_ms and time_ms < trace.own_ms:
            trace.best_ms = trace.own_ms = time_ms
            trace.best = configuration
    waiting.clear()


@dataclass
class _Judge:
    """Remembers which rule dropped which prefix (an empty string: none)."""

    problem: Problem
    trace: PaperTrace
    stage_pruning: bool
    layer_pruning: bool
    verdicts: dict[Configuration, str] = field(default_factory=dict)

    def rule_against(self, configuration: Configuration) -> str:
        """The rule that drops the shortest dropped prefix; empty where every prefix is kept."""
        for count in range(1, len(configuration) + 1):
            prefix = configuration[:count]
            if prefix not in self.verdicts:
                self.verdicts[prefix] = self._judge(configuration, count)
            if self.verdicts[prefix]:
                return self.verdicts[prefix]
        return ""

    def _judge(self, configuration: Configuration, count: int) -> str:
        if self.layer_pruning and not rises_and_falls(configuration[:count]):
            return "layer"
        is_partial = count < len(configuration)
        if self.stage_pruning and is_partial and self._exceeds(configuration, count):
            return "stage"
        return ""

    def _exceeds(self, configuration: Configuration, count: int) -> bool:
        return partial_time(self.problem, configuration, count) * EXCESS > self.trace.best_ms


def rises_and_falls(prefix: Configuration) -> bool:
    """Whether the layers of each kind's stages, in pipeline order, never rise after a fall (Theorem 2)."""
    for kind in {stage.kind for stage in prefix}:
        layers = [stage.num_layers for stage in prefix if stage.kind == kind]
        peak = layers.index(max(layers))
        if layers[: peak + 1] != sorted(layers[: peak + 1]) or layers[peak:] != sorted(layers[peak:], reverse=True):
            return False
    return True


def partial_time(problem: Problem, configuration: Configuration, count: int) -> float:
    """g(S_x) of Eq. 2 (ms) for the first `count` stages of a configuration.

    With chunks, the path goes down through the first chunk of each stage before the last of them, and back up through
    it.
    """
    times = configuration_times(problem, configuration)
    last = count - 1
    lead = float(times.forward_ms[:last, 0].sum())
    work = problem.num_micro_batches * float(times.forward_ms[last].sum() + times.backward_ms[last].sum())
    tails = (float(times.backward_ms[i:last, 0].sum() + times.all_reduce_ms[i]) for i in range(count))
    return lead + work + max(tails)
