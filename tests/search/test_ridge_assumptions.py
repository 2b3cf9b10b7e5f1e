"""When Theorem 2 holds: the check beside its definition, allocation by allocation."""

import random
from dataclasses import replace

import pytest

from poseidon.cost.problem import Kind, LayerCost, Problem
from poseidon.search.evaluate import configuration_times
from poseidon.search.options import SearchOptions
from poseidon.search.paper import enumerate_as_paper
from poseidon.search.reference import all_configurations, exhaustive_search
from poseidon.search.ridge_assumptions import failing_assumptions
from poseidon.search.space import space_of
from tests.search.checking import run_of


def tight_problem(seed):
    """Eager 1F1B without extras on stages whose memory leaves little choice, so that the assumptions sometimes hold."""
    rng = random.Random(seed)
    stages, ratio, base = rng.randint(3, 5), rng.uniform(1.2, 2.5), rng.randint(2, 6)
    filled = rng.choice([1, stages - 1])
    forward_ms = (10.0, 10.0 * rng.uniform(0.95, 1.05))

    def limits():
        return tuple((limit,) for limit in sorted(base + rng.choice([-1, 0, 0, 0, 0, 0, 0, 0]) for _ in range(stages)))

    kinds = tuple(
        Kind(f"K{i}", count, 1, (LayerCost(f, f * ratio),), LayerCost(), LayerCost(), limits())
        for i, (count, f) in enumerate(zip((filled, stages - filled), forward_ms, strict=True))
    )
    most_ms = (ratio - 1) / 2 * 10 * base * rng.uniform(0.2, 1)
    times = tuple(tuple(rng.uniform(0, most_ms) for _ in range(2)) for _ in range(2))
    layers = max(stages, stages * base - rng.randint(0, 3))
    micro_batches = 2 * stages + rng.randint(0, 3)
    return Problem(f"eager {seed}", "eager_1f1b", 1, micro_batches, layers, stages, "stage", kinds, times, times)


def holds_for_all(problem):
    """Assumptions (2) and (4) by their definition: (2) with the least F of all allocations, as the check has it."""
    ratio = problem.kinds[0].layers[0].backward_ms / problem.kinds[0].layers[0].forward_ms
    alpha = max(2 / 3, ratio / (1 + ratio))
    times = [configuration_times(problem, configuration) for configuration in all_configurations(problem)]
    least = min(time.forward_ms.min() for time in times)
    sends = [max(time.send_forward_ms[:-1].max(), time.send_backward_ms[1:].max()) for time in times]
    balanced = all(time.forward_ms.min() >= alpha * time.forward_ms.max() * (1 - 1e-12) for time in times)
    return max(sends) <= (ratio - 1) / 2 * least * (1 + 1e-12), balanced


def test_balance_and_transfers_are_judged_over_every_allocation():
    seen = set()
    for seed in range(120):
        problem = tight_problem(seed)
        if not any(True for _ in all_configurations(problem)):
            continue
        failing = failing_assumptions(space_of(problem))
        short_transfers, balanced = holds_for_all(problem)
        assert any("transfer" in reason for reason in failing) is not short_transfers
        assert any("differ by more" in reason for reason in failing) is not balanced
        seen.add((short_transfers, balanced))
    assert len(seen) == 4


def test_ridges_lose_nothing_where_the_assumptions_hold():
    cut = 0
    for seed in range(300):
        problem = tight_problem(seed)
        if failing_assumptions(space_of(problem)):
            continue
        options = SearchOptions(policy="paper", warmup_samples=0)
        enumeration = enumerate_as_paper(run_of([problem], options))
        best = exhaustive_search(problem)
        if best is not None:
            assert enumeration.incumbents.best_ms == pytest.approx(best.iteration_time_ms, rel=1e-12)
            cut += enumeration.has_layer_cuts[0]
    assert cut > 5


def balanced_problem():
    kind = Kind("A", 3, 1, (LayerCost(10, 20),), LayerCost(), LayerCost(), ((3,), (3,), (3,)))
    return Problem("three", "eager_1f1b", 1, 6, 8, 3, "stage", (kind,), ((5.0,),), ((5.0,),))


def test_equal_stages_with_little_slack_meet_them():
    assert failing_assumptions(space_of(balanced_problem())) == ()


def with_kind(**changes):
    return replace(balanced_problem(), kinds=(replace(balanced_problem().kinds[0], **changes),))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (replace(balanced_problem(), schedule="1f1b"), "the schedule is 1f1b, the proof is for eager_1f1b"),
        (replace(balanced_problem(), num_micro_batches=5), "M = 5 is below 2 N = 6"),
        (replace(balanced_problem(), layer_types=(0,) * 8), "the layers are of several types"),
        (with_kind(last=LayerCost(1, 2)), "the first or the last stage has embedding or head terms"),
        (with_kind(layers=(LayerCost(10, 20, 1),)), "there are all-reduce terms"),
        (with_kind(layers=(LayerCost(10, 10),)), "B / F is not above 1"),
        (with_kind(max_layers=((3,), (4,), (3,))), "the memory limits of A fall along the pipeline"),
        (
            with_kind(max_layers=((4,), (4,), (4,))),
            "some allocation within memory has stages whose F differ by more than 1 / 0.667",
        ),
        (
            replace(balanced_problem(), inter_node_ms=((11.0,),)),
            "a transfer takes longer than (r - 1) / 2 of the shortest forward",
        ),
    ],
)
def test_what_fails_is_named(problem, reason):
    assert failing_assumptions(space_of(problem)) == (reason,)


def test_one_ratio_is_asked_of_all_kinds():
    kind = balanced_problem().kinds[0]
    other = replace(kind, name="B", stages=1, layers=(LayerCost(10, 21),))
    times = ((5.0, 5.0), (5.0, 5.0))
    problem = replace(
        balanced_problem(), kinds=(replace(kind, stages=2), other), intra_node_ms=times, inter_node_ms=times
    )
    assert failing_assumptions(space_of(problem)) == ("B / F is not the same on all stages",)
