"""Ridges: what counts as one, in optimal plans and in random small problems."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.cost.costs import costs
from poseidon.cost.problem_file import problem_from_json
from poseidon.paper.exhibits.figure_4 import EXHIBIT, layers_text, losses, plans_of, problems_of, ridge_text
from poseidon.paper.searching import searched
from poseidon.paper.studies import ridge, ridge_problems
from poseidon.paper.studies.ridge_problems import assumptions_hold, random_problem
from poseidon.search.options import SearchOptions
from poseidon.search.reference import exhaustive_search
from tests.paper.tiny import check_tables, drawn, stored, tiny_request

Write = Callable[..., Path]
DATA = Path(__file__).parent.parent / "search" / "data" / "ridge-counterexamples.json"
COUNTEREXAMPLES = json.loads(DATA.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([3], True),
        ([2, 3, 3, 2], True),
        ([3, 3, 3], True),
        ([1, 2, 4], True),
        ([4, 2, 1], True),
        ([3, 2, 3], False),
        ([3, 3, 2, 2, 3], False),
        ([1, 3, 2, 2, 1], True),
    ],
)
def test_a_ridge_rises_and_then_falls(layers: list[int], expected: bool) -> None:
    assert ridge.is_ridge(layers) is expected


def test_each_type_is_looked_at_by_itself() -> None:
    accelerators = ["a", "b", "a", "b", "a"]
    assert ridge.broken_types(accelerators, [3, 9, 2, 8, 3]) == ("a",)
    assert ridge.broken_types(accelerators, [2, 9, 3, 8, 3]) == ()


def test_plans_of_all_settings_and_batches_have_their_layers(write_experiment: Write) -> None:
    rows = list(ridge.STUDY.run(tiny_request(write_experiment)))
    best = plans_of(rows, ridge.SETTING)
    assert [row["global_batch_size"] for row in best] == [8, 16, 32] * 5
    assert all(sum(row["layers"]) == 8 and row["status"] == "optimal" for row in rows)
    assert all(len(row["layers"]) == len(row["accelerators"]) for row in rows)
    assert all(("ridge_complete" in row) is bool(row["broken_types"]) for row in rows)


def test_at_its_own_batch_every_outer_choice_of_a_setting_is_looked_at(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    rows = [row for row in ridge.STUDY.run(request) if row["experiment"] == "setting1"]
    each = plans_of(rows, ridge.OUTER_CHOICE)
    assert {row["global_batch_size"] for row in each} == {16}
    assert [row["outer_choice"] for row in each] == [choice.name for choice, _ in costs(request.experiment("setting1"))]
    best_ms = next(row for row in plans_of(rows, ridge.SETTING) if row["global_batch_size"] == 16)["iteration_time_ms"]
    assert min(row["iteration_time_ms"] for row in each) == pytest.approx(best_ms, rel=1e-9)


def test_an_optimum_that_is_no_ridge_comes_with_the_best_ridge(write_experiment: Write) -> None:
    example = next(item for item in COUNTEREXAMPLES if item["loss"] > 0.005)
    problem = problem_from_json(example["problem"], DATA.name)
    row = ridge.best_ridge(tiny_request(write_experiment), problem)
    assert row["ridge_complete"]
    assert row["ridge_ms"] == pytest.approx(example["best_ridge"]["iteration_time_ms"], rel=1e-9)


def test_the_optimum_of_a_random_problem_is_that_of_the_exhaustive_search(write_experiment: Write) -> None:
    rows = list(ridge_problems.rows(tiny_request(write_experiment), num_problems=6))
    assert {row["schedule"] for row in rows} == set(ridge_problems.SCHEDULES)
    draw = random.Random(ridge_problems.SEED)
    problem = random_problem(draw, "1f1b", "1f1b 0")
    best = exhaustive_search(problem)
    assert best is not None
    assert rows[0]["optimum_ms"] == pytest.approx(best.iteration_time_ms, rel=1e-12)
    for row in rows:
        assert row["ridge_ms"] >= row["optimum_ms"] * (1 - 1e-12)
        assert 0 < row["ridges"] <= row["configurations"]
        by_kind = ridge.broken_types(row["ridge_kinds"], row["ridge_layers"])
        assert by_kind == ()


def test_the_problems_of_both_schedules_are_the_same(write_experiment: Write) -> None:
    rows = list(ridge_problems.rows(tiny_request(write_experiment), num_problems=6))
    sizes = {
        schedule: [
            (row["num_stages"], row["num_layers"], row["configurations"]) for row in rows if row["schedule"] == schedule
        ]
        for schedule in ridge_problems.SCHEDULES
    }
    assert sizes["1f1b"] == sizes["eager_1f1b"]


def test_known_counterexamples_meet_the_assumptions() -> None:
    for example in COUNTEREXAMPLES:
        problem = problem_from_json(example["problem"], DATA.name)
        best = searched([problem], SearchOptions(policy="brute-force")).best
        assert best is not None
        assert assumptions_hold(best) is example["optimum"]["assumptions_hold"]


def test_the_exhibit_counts_ridges_and_losses(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    plans = stored(ridge.STUDY, list(ridge.STUDY.run(request)))
    broken = plans_of(plans, ridge.OUTER_CHOICE)[3]
    ridge_ms = broken["iteration_time_ms"] * 1.02
    broken |= {"broken_types": ["fast"], "ridge_ms": ridge_ms, "ridge_complete": True}
    problems = stored(ridge_problems.STUDY, list(ridge_problems.rows(request, num_problems=8)))
    met = problems_of(problems, "1f1b", assumptions=True)
    assert met
    met[0]["ridge_ms"] = met[0]["optimum_ms"] * 1.0123
    tables = {"ridge": plans, "ridge-problems": problems}
    check_tables(EXHIBIT, tables)
    text = EXHIBIT.found(tables)
    num_choices = len(plans_of(plans, ridge.OUTER_CHOICE))
    assert "15 of 15 best plans" in text
    assert f"{num_choices - 1} of {num_choices} optima of their outer choices are ridges" in text
    assert "the best ridge of the others is up to 2.00 % slower" in text
    assert f"under 1F1B in {len(losses(met, 'optimum_ms'))} of {len(met)} (by up to 1.23 %)" in text
    assert EXHIBIT.tables(tables)[1].rows[0][-1] == "+2 %"
    assert len(drawn(EXHIBIT, tables).axes) == 10
    assert "For the 1 that are no ridge" in EXHIBIT.remarks(tables)[0]


def test_a_plan_that_is_no_ridge_is_shown_with_the_best_ridge() -> None:
    row = {"accelerators": ["a", "a", "b"], "layers": [3, 2, 4], "broken_types": ["a"], "iteration_time_ms": 100.0}
    assert layers_text(row) == "a: 3 2; b: 4"
    assert ridge_text(row) == "none found"
    assert ridge_text({**row, "ridge_ms": 100.5, "ridge_complete": True}) == "+0.5 %"
    assert ridge_text({**row, "ridge_ms": 100.0, "ridge_complete": False}) == "as fast so far (stopped)"
    assert ridge_text({**row, "broken_types": []}) == "the plan"
