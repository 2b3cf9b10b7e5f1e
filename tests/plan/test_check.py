"""Every check passes on a right plan and fails on one that was tampered with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from poseidon.plan import NodeDevices, Plan, Verdict, check_plan
from poseidon.plan.check import PlanCheckError, assured
from poseidon.plan.check_optimum import Effort

Tamper = Callable[[Plan, Callable[..., Plan]], Plan]


def verdicts(plan: Plan) -> dict[str, Verdict]:
    return {finding.check: finding.verdict for finding in check_plan(plan)}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"search": {"assignment": "stage"}},
        {"search": {"tp": "per-type"}},
        {"search": {"tp": "per-stage", "assignment": "stage"}},
        {"search": {"allow_idle": True}},
        {"search": {"top": 3}},
        {"training": {"schedules": ["gpipe"], "recompute": "full"}},
        {"training": {"schedules": ["eager_1f1b"]}},
        {"training": {"schedules": ["adaptive_1f1b"], "recompute": "auto"}},
        {"training": {"schedules": ["1f1b", "interleaved_1f1b"], "num_chunks": [2]}},
    ],
    ids=str,
)
def test_a_plan_of_the_search_is_right(make_plan: Callable[..., Plan], changes: dict[str, dict[str, object]]) -> None:
    plan = make_plan(**changes)
    assert set(verdicts(plan).values()) == {Verdict.RIGHT}
    assert assured(plan) is plan


def _fewer_layers(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    first, end = plan.pipeline.stages[-1].layer_ranges[0]
    return change_stage(plan, -1, layer_ranges=((first, end - 1),))


def _empty_stage(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    whole = change_stage(plan, -2, layer_ranges=((plan.pipeline.stages[-2].layer_ranges[0][0], 8),))
    return change_stage(whole, -1, layer_ranges=((8, 8),))


def _device_twice(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return change_stage(plan, 1, devices=plan.pipeline.stages[0].devices)


def _unknown_node(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return change_stage(plan, 0, devices=(NodeDevices(7, plan.pipeline.stages[0].devices[0].devices),))


def _other_type(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    other = {"fast": "slow", "slow": "fast"}[plan.pipeline.stages[0].accelerator]
    return change_stage(plan, 0, accelerator=other)


def _swapped_ranks(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return change_stage(plan, 0, ranks=plan.pipeline.stages[0].ranks[::-1])


def _more_micro_batches(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, pipeline=replace(plan.pipeline, num_micro_batches=plan.pipeline.num_micro_batches + 1))


def _unknown_schedule(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, pipeline=replace(plan.pipeline, schedule="1f2b"))


def _other_recompute(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, pipeline=replace(plan.pipeline, recompute="full"))


def _faster_forward(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return change_stage(plan, 0, forward_ms=(plan.pipeline.stages[0].forward_ms[0] * 0.9,))


def _free_transfer(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return change_stage(plan, 0, send_forward_ms=0.0)


def _less_memory(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    memory = plan.pipeline.stages[0].memory
    return change_stage(plan, 0, memory=replace(memory, activations_bytes=memory.activations_bytes / 2))


def _larger_limit(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    memory = plan.pipeline.stages[0].memory
    return change_stage(plan, 0, memory=replace(memory, limit_bytes=2 * memory.limit_bytes))


def _shorter_iteration(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    faster = replace(plan.pipeline, iteration_time_ms=plan.pipeline.iteration_time_ms * 0.99)
    return replace(plan, pipeline=faster, lower_bound_ms=faster.iteration_time_ms)


def _more_tokens(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, pipeline=replace(plan.pipeline, tokens_per_second=plan.pipeline.tokens_per_second * 1.01))


def _higher_utilisation(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, pipeline=replace(plan.pipeline, mfu=plan.pipeline.mfu * 1.01))


def _loose_bound(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, lower_bound_ms=plan.lower_bound_ms * 0.9)


def _bound_above_the_time(plan: Plan, change_stage: Callable[..., Plan]) -> Plan:
    return replace(plan, lower_bound_ms=plan.lower_bound_ms * 1.1)


TAMPERED: Mapping[str, tuple[Tamper, ...]] = {
    "devices": (_device_twice, _unknown_node, _other_type, _swapped_ranks),
    "layers": (_fewer_layers, _empty_stage),
    "settings": (_more_micro_batches, _unknown_schedule, _other_recompute),
    "stage times": (_faster_forward, _free_transfer),
    "memory": (_less_memory, _larger_limit),
    "iteration time": (_shorter_iteration, _faster_forward),
    "throughput": (_more_tokens, _higher_utilisation),
    "status": (_loose_bound, _bound_above_the_time),
}


@pytest.mark.parametrize(
    ("check", "tamper"),
    [(check, tamper) for check, tampers in TAMPERED.items() for tamper in tampers],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_tampering_is_found(
    make_plan: Callable[..., Plan], change_stage: Callable[..., Plan], check: str, tamper: Tamper
) -> None:
    plan = tamper(make_plan(search={"fixed_tp": 1, "fixed_dp": 2}), change_stage)
    assert verdicts(plan)[check] is Verdict.WRONG
    with pytest.raises(PlanCheckError, match=check):
        assured(plan)


def test_a_slower_configuration_is_not_optimal(make_plan: Callable[..., Plan]) -> None:
    """The next best plan, sold as the best one."""
    plan = make_plan(search={"top": 2})
    slower = plan.alternatives[0]
    sold = replace(plan, pipeline=slower, lower_bound_ms=slower.iteration_time_ms, alternatives=())
    found = verdicts(sold)
    assert found.pop("lower bound") is Verdict.WRONG
    assert set(found.values()) == {Verdict.RIGHT}


def test_idle_devices_must_be_allowed(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(search={"allow_idle": True, "fixed_dp": 1, "fixed_tp": 1, "fixed_pp": 2})
    assert plan.pipeline.idle != ()
    strict = plan.experiment.search.model_copy(update={"allow_idle": False})
    forbidden = replace(plan, experiment=plan.experiment.model_copy(update={"search": strict}))
    assert verdicts(forbidden)["devices"] is Verdict.WRONG


def test_a_large_space_is_not_tried_in_full(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    findings = {item.check: item for item in check_plan(plan, Effort(0, 0, 0, 0))}
    assert findings["lower bound"].verdict is Verdict.NOT_CHECKED
    assert "the search's own proof" in findings["lower bound"].detail


def test_chunks_go_around_the_ends_between_nodes_even_where_both_ends_share_one(make_plan: Callable[..., Plan]) -> None:
    nodes = [{"accelerator": "fast", "count": 1, "devices": 4}]
    plan = make_plan(cluster={"nodes": nodes}, training={"schedules": ["interleaved_1f1b"]}, search={"fixed_pp": 2})
    first, last = plan.pipeline.stages
    assert first.nodes == last.nodes
    assert last.send_forward_ms > first.send_forward_ms
    assert verdicts(plan)["stage times"] is Verdict.RIGHT
