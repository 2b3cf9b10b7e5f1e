from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import replace

from poseidon.explain.first_plan import problems_of
from poseidon.explain.outer_choices import Survey, refusal_reasons, survey
from poseidon.explain.plan_view import explanation_text, fresh_line, proof_line
from poseidon.inputs import Experiment
from poseidon.plan import Plan
from poseidon.plan.time_breakdown import pipeline_breakdown
from poseidon.search.reference import exhaustive_search
from poseidon.search.result import SolutionStatus, TerminationReason

TIGHT = {
    "accelerators": {"fast": {"peak_tflops": 200.0, "memory_gb": 2.4}, "slow": {"peak_tflops": 100.0, "memory_gb": 1.0}}
}


def best_times(experiment: Experiment) -> dict[str, float]:
    """The best time of every outer choice, by trying everything; infinite where there is no plan."""
    best = {}
    for choice, problem in problems_of(experiment):
        solution = exhaustive_search(problem)
        best[choice.name] = math.inf if solution is None else solution.iteration_time_ms
    return best


def test_every_outer_choice_has_its_best_time(experiment: Callable[..., Experiment]) -> None:
    example = experiment(cluster=TIGHT)
    surveyed, best = survey(example, None, None), best_times(example)
    assert surveyed.is_complete
    assert {item.name for item in surveyed.weighed} == set(best)
    assert math.inf in best.values()
    for item in surveyed.weighed:
        assert item.fits == math.isfinite(best[item.name])
        if item.fits:
            assert item.pipeline is not None
            assert math.isclose(item.least_ms, best[item.name], rel_tol=1e-9)
            assert item.time == pipeline_breakdown(item.pipeline)
    times = [item.least_ms for item in surveyed.weighed]
    assert times == sorted(times)


def test_what_is_not_worked_out_has_a_bound_that_holds(experiment: Callable[..., Experiment]) -> None:
    example = experiment(cluster=TIGHT)
    best = best_times(example)
    for top in (1, 2, 3):
        surveyed = survey(example, top, None)
        num_fit = sum(map(math.isfinite, best.values()))
        assert sum(item.pipeline is not None for item in surveyed.weighed) == min(top, num_fit)
        for item in surveyed.weighed:
            assert item.least_ms <= best[item.name] * (1 + 1e-9)


def test_a_choice_that_does_not_fit_says_which_stage_is_short_of_how_much(
    experiment: Callable[..., Experiment],
) -> None:
    unfit = [item for item in survey(experiment(cluster=TIGHT), None, None).weighed if not item.fits]
    assert unfit
    for item in unfit:
        assert item.shortfall is not None
        assert item.shortfall.choice == item.name
        assert item.shortfall.short_gb > 0
        limit_gb = TIGHT["accelerators"][item.shortfall.accelerator]["memory_gb"]
        assert item.shortfall.limit_bytes == limit_gb * 1e9


def test_refusals_are_counted_by_reason(experiment: Callable[..., Experiment]) -> None:
    example = experiment(training={"global_batch_size": 2, "micro_batch_sizes": [1, 2]})
    reasons = dict(refusal_reasons(survey(example, None, None).refusals))
    assert reasons["DP 2 x micro-batch 2 does not divide the global batch"] >= 1


def shown(plan: Plan, surveyed: Survey, *, everything: bool = False) -> str:
    return explanation_text(plan, pipeline_breakdown(plan.pipeline), surveyed, io.StringIO(), everything=everything)


def test_the_text_names_every_choice_with_its_reason(
    experiment: Callable[..., Experiment], make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan(cluster=TIGHT)
    surveyed = survey(plan.experiment, None, None)
    text = shown(plan, surveyed, everything=True)
    for item in surveyed.weighed:
        if item.name != plan.pipeline.outer_choice:
            [row] = [line for line in text.splitlines() if line.startswith(f"{item.name} ")]
            assert (f"{item.shortfall.short_gb:.1f}" if item.shortfall else f"{item.least_ms:,.2f}") in row
    assert "finds none that is faster" in text
    assert "No plan is faster: proven over" in text


def test_a_plan_that_is_not_the_best_is_told_so(make_plan: Callable[..., Plan]) -> None:
    worse = make_plan(search={"fixed_dp": 1, "fixed_tp": 1})
    free = make_plan()
    surveyed = survey(free.experiment, 3, None)
    assert f"finds a faster plan in {surveyed.seconds:.2f} s: {free.pipeline.outer_choice}" in fresh_line(
        worse.pipeline, surveyed
    )


def test_what_is_proven_is_said(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    stopped = replace(plan.search, termination=TerminationReason.TIME_LIMIT)
    half = replace(
        plan,
        status=SolutionStatus.FEASIBLE,
        gap=0.5,
        lower_bound_ms=plan.pipeline.iteration_time_ms / 2,
        search=stopped,
    )
    assert "50.0 % less than this one (the search stopped: time limit)." in proof_line(half)
    nothing = replace(half, lower_bound_ms=0.0, search=replace(plan.search, policy="metis"))
    assert proof_line(nothing) == "Nothing: policy metis proves no bound."
