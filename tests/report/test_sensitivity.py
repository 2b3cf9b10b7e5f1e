"""What changes would give, by real searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.experiment import experiment_from_resolved
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.profile.file import write_profile
from poseidon.report import Sensitivity, find_sensitivity
from poseidon.report.changes import changed, changes_of
from poseidon.search.result import SolutionStatus

LINKS = {
    "intra_node": {"bandwidth_gbps": 100.0, "latency_us": 5.0},
    "inter_node": {"bandwidth_gbps": 2.0, "latency_us": 10.0},
}


def sensitivity_of(plan: Plan, time_limit_s: float = 60) -> Sensitivity:
    return find_sensitivity(plan, time_limit_s, lambda number, total, label: None)


def test_the_changes_of_the_quickstart(quickstart: Plan) -> None:
    assert [(change.kind, change.label) for change in changes_of(quickstart.experiment)] == [
        ("link", "10 % faster links inside nodes"),
        ("link", "10 % faster links between nodes"),
        ("link", "10 % faster links between clusters"),
        ("node", "one more node: 8 A100"),
        ("node", "one more node: 8 RTX-4090"),
        ("node", "one more node: 4 A6000"),
        ("accelerator", "10 % faster A100"),
        ("accelerator", "10 % faster RTX-4090"),
        ("accelerator", "10 % faster A6000"),
    ]


def test_ten_percent_of_speed_cost_nothing_and_bring_at_most_ten_percent(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(cluster={"links": LINKS})
    sensitivity = sensitivity_of(plan)
    assert sensitivity.base_is_plan
    gains = {a.change.label: a.gain(sensitivity.base_tokens_per_second) for a in sensitivity.answers}
    faster = {label: gain for label, gain in gains.items() if label.startswith("10 %")}
    assert len(faster) == 4
    assert all(gain is not None and -1e-9 <= gain <= 0.1 + 1e-9 for gain in faster.values())
    assert max(gain for gain in faster.values() if gain is not None) > 0.01


def test_even_a_search_without_time_is_never_slower(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(cluster={"links": LINKS})
    sensitivity = sensitivity_of(plan, time_limit_s=1e-6)
    for answer in sensitivity.answers:
        if answer.change.kind != "node":
            assert answer.iteration_time_ms is not None
            assert answer.iteration_time_ms <= plan.pipeline.iteration_time_ms * (1 + 1e-9)


def test_an_answer_is_that_of_the_search_by_itself(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(cluster={"links": LINKS})
    data = plan.experiment.resolved()
    data["cluster"]["links"]["cross_cluster"]["bandwidth_gbps"] *= 1.1
    alone = find_plan(experiment_from_resolved(data))
    assert isinstance(alone, Plan)
    [answer] = [a for a in sensitivity_of(plan).answers if a.change.subject == "cross_cluster"]
    assert answer.status == "optimal"
    assert answer.iteration_time_ms == pytest.approx(alone.pipeline.iteration_time_ms, rel=1e-9)


def test_all_bandwidths_of_a_class_get_faster_and_nothing_else(write_experiment: Any) -> None:
    from poseidon.inputs.experiment import load_experiment

    own = {"intra_node": {"bandwidth_gbps": 300.0}, "inter_node": {"latency_us": 7.0}}
    accelerators = {
        "fast": {"peak_tflops": 200.0, "memory_gb": 16.0, "links": own, "memory_bandwidth_gb_per_s": 1000.0},
        "slow": {"peak_tflops": 100.0, "memory_gb": 12.0},
    }
    pairs = [{"between": ["fast", "slow"], "bandwidth_gbps": 50.0}]
    cluster = {"accelerators": accelerators, "cluster_links": pairs}
    experiment = load_experiment(write_experiment(cluster=cluster))
    by_subject = {(change.kind, change.subject): change for change in changes_of(experiment)}
    intra = changed(experiment, by_subject["link", "intra_node"], {})["cluster"]
    assert intra["accelerators"]["fast"]["links"]["intra_node"]["bandwidth_gbps"] == pytest.approx(330)
    assert intra["accelerators"]["fast"]["links"]["inter_node"]["bandwidth_gbps"] is None
    assert intra["links"]["intra_node"]["bandwidth_gbps"] == pytest.approx(880)
    assert intra["links"]["inter_node"] == experiment.resolved()["cluster"]["links"]["inter_node"]
    cross = changed(experiment, by_subject["link", "cross_cluster"], {})["cluster"]
    assert cross["cluster_links"][0]["bandwidth_gbps"] == pytest.approx(55)
    assert cross["links"]["intra_node"]["bandwidth_gbps"] == 800
    fast = changed(experiment, by_subject["accelerator", "fast"], {})["cluster"]["accelerators"]
    assert fast["fast"]["peak_tflops"] == pytest.approx(220)
    assert fast["fast"]["memory_bandwidth_gb_per_s"] == pytest.approx(1100)
    assert fast["slow"] == experiment.resolved()["cluster"]["accelerators"]["slow"]
    more = changed(experiment, by_subject["node", "slow"], {})["cluster"]["nodes"]
    assert [group["count"] for group in more] == [1, 2]


def test_classes_without_a_link_are_left_out(make_plan: Callable[..., Plan]) -> None:
    nodes = [{"accelerator": "fast", "count": 1, "devices": 2}]
    plan = make_plan(cluster={"nodes": nodes})
    assert [change.subject for change in changes_of(plan.experiment) if change.kind == "link"] == ["intra_node"]


@pytest.fixture
def measured(make_plan: Callable[..., Plan], tmp_path: Path) -> Plan:
    """The example's plan from a profile file."""
    plan = make_plan(cluster={"links": LINKS})
    path = tmp_path / "profile.json"
    write_profile(load_profile(plan.experiment), path)
    found = find_plan(experiment_from_resolved({**plan.experiment.resolved(), "profile": str(path)}))
    assert isinstance(found, Plan)
    return found


def test_measured_rows_of_a_faster_accelerator_take_less_time(measured: Plan) -> None:
    sensitivity = sensitivity_of(measured)
    gains = {a.change.label: a.gain(sensitivity.base_tokens_per_second) for a in sensitivity.answers}
    assert gains["10 % faster fast"] is not None
    assert 0 <= gains["10 % faster fast"] <= 0.1
    assert max(gain or 0 for label, gain in gains.items() if "faster" in label) > 0.005


def test_a_profile_that_is_gone_is_said(measured: Plan) -> None:
    Path(measured.experiment.profile).unlink()
    sensitivity = sensitivity_of(measured)
    assert {answer.status for answer in sensitivity.answers} == {"refused"}
    assert all("no such file" in answer.found for answer in sensitivity.answers)


def test_a_plan_that_is_not_proven_is_compared_with_a_search_without_a_change(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    slower = replace(plan.pipeline, iteration_time_ms=2 * plan.pipeline.iteration_time_ms)
    sensitivity = sensitivity_of(replace(plan, status=SolutionStatus.FEASIBLE, pipeline=slower))
    assert not sensitivity.base_is_plan
    assert sensitivity.base_iteration_time_ms == pytest.approx(plan.pipeline.iteration_time_ms)
    assert all((a.gain(sensitivity.base_tokens_per_second) or 0) < 0.6 for a in sensitivity.answers)


def test_a_value_beyond_what_is_accepted_is_refused_in_one_row(make_plan: Callable[..., Plan]) -> None:
    links = {"intra_node": {"bandwidth_gbps": 1e6}, "inter_node": {"bandwidth_gbps": 100.0}}
    answers = sensitivity_of(make_plan(cluster={"links": links})).answers
    refused = [answer for answer in answers if answer.status == "refused"]
    assert [answer.change.subject for answer in refused] == ["intra_node"]
    assert "bandwidth_gbps" in refused[0].found


def test_searches_are_announced(make_plan: Callable[..., Plan]) -> None:
    heard: list[tuple[int, int, str]] = []
    plan = make_plan()
    find_sensitivity(plan, 60, lambda *told: heard.append(told))
    assert [number for number, _, _ in heard] == list(range(1, len(heard) + 1))
    assert {total for _, total, _ in heard} == {len(changes_of(plan.experiment))}


def test_inputs_that_make_no_search_raise(measured: Plan) -> None:
    Path(measured.experiment.profile).unlink()
    with pytest.raises(InputError, match="no such file"):
        sensitivity_of(replace(measured, status=SolutionStatus.FEASIBLE))


def test_an_interruption_keeps_the_answers_before_it(make_plan: Callable[..., Plan]) -> None:
    def announce(number: int, total: int, label: str) -> None:
        if number == 3:
            raise KeyboardInterrupt

    sensitivity = find_sensitivity(make_plan(), 60, announce)
    assert sensitivity.interrupted
    assert len(sensitivity.answers) == 2
