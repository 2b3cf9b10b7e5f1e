"""What a framework cannot express is refused, with a search option that avoids it; the option does avoid it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.output.export import FRAMEWORKS, export_plan
from poseidon.plan.plan import Plan

PER_STAGE: tuple[Any, ...] = ("quickstart", {}, {"tp": "per-stage", "assignment": "stage"})
HALF = {"allow_idle": True, "fixed_pp": 1, "fixed_dp": 2, "fixed_tp": 2}
"""Four of the eight devices of a node."""
ONE_TP = ("megatron", "mindspeed-llm", "torchtitan", "ms-swift", "colossalai")


def reasons(plan: Plan, framework: str, version: str | None = None) -> list[str]:
    with pytest.raises(InputError) as caught:
        export_plan(plan, "plan.json", framework, version)
    return str(caught.value).splitlines()


def changed_model(plan: Plan, **changes: Any) -> Plan:
    model = plan.experiment.model.model_copy(update=changes)
    return replace(plan, experiment=plan.experiment.model_copy(update={"model": model}))


def changed_training(plan: Plan, **changes: Any) -> Plan:
    training = plan.experiment.training.model_copy(update=changes)
    return replace(plan, experiment=plan.experiment.model_copy(update={"training": training}))


@pytest.mark.parametrize("framework", ONE_TP)
def test_unequal_tp(searched: Callable[..., Plan], framework: str) -> None:
    plan = searched(*PER_STAGE)
    assert len({stage.tp for stage in plan.pipeline.stages}) > 1
    [reason] = [line for line in reasons(plan, framework) if "TP differs" in line]
    assert reason.startswith("plan.json: stages: TP differs between stages (2, 1), and ")
    assert "--target megatron (or --tp uniform)" in reason


def test_the_advice_for_unequal_tp_helps(searched: Callable[..., Plan]) -> None:
    assert export_plan(searched("quickstart", {}, {"tp": "uniform", "assignment": "stage"}), "plan.json", "megatron")
    target = searched("quickstart", {}, {"tp": "per-stage", "assignment": "stage", "target": "megatron"})
    assert export_plan(target, "plan.json", "megatron")
    assert export_plan(searched(*PER_STAGE), "plan.json", "hexiscale")


@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "torchtitan"])
@pytest.mark.parametrize("schedule", ["adaptive_1f1b", "eager_1f1b"])
def test_orders_of_our_own(searched: Callable[..., Plan], framework: str, schedule: str) -> None:
    plan = searched("quickstart", {"schedules": [schedule]})
    [reason] = [line for line in reasons(plan, framework) if "schedule" in line]
    assert f"does not run {schedule}; search again with --schedule 1f1b" in reason
    assert "torchtitan" in reason
    assert export_plan(plan, "plan.json", "torchtitan")


@pytest.mark.parametrize("framework", ["megatron", "flagscale", "ms-swift", "colossalai"])
def test_gpipe(searched: Callable[..., Plan], framework: str) -> None:
    plan = searched("quickstart", {"schedules": ["gpipe"], "global_batch_size": 16, "recompute": "full"})
    assert any("does not run gpipe" in line for line in reasons(plan, framework))
    assert export_plan(plan, "plan.json", "hexiscale")


@pytest.mark.parametrize("framework", ["flagscale", "hexiscale"])
def test_chunks(searched: Callable[..., Plan], framework: str) -> None:
    plan = searched("quickstart", {"schedules": ["interleaved_1f1b"]})
    assert any("does not run interleaved_1f1b" in line for line in reasons(plan, framework))


def test_every_reason_is_said_at_once(searched: Callable[..., Plan]) -> None:
    degrees = {"fixed_dp": 2, "fixed_pp": 7}  # a search of a tenth of a second instead of six
    training = {"schedules": ["adaptive_1f1b"], "recompute": "selective"}
    plan = searched("quickstart", training, PER_STAGE[2] | degrees)
    assert len({stage.tp for stage in plan.pipeline.stages}) > 1
    assert len(reasons(plan, "colossalai")) == 3


def test_uneven_middle_of_an_older_megatron(searched: Callable[..., Plan]) -> None:
    plan = searched("quickstart")
    assert any("evenly" in line and "core 0.13" in line for line in reasons(plan, "megatron", "0.12"))
    assert any("evenly" in line for line in reasons(searched("setting2"), "megatron", "0.11"))
    assert export_plan(searched("setting2"), "plan.json", "megatron", "0.12")


def test_chunks_of_unequal_size_of_an_older_megatron(searched: Callable[..., Plan]) -> None:
    plan = searched("quickstart", {"schedules": ["interleaved_1f1b"]})
    assert any("all chunks of a stage as many layers" in line for line in reasons(plan, "megatron", "0.12"))


def test_groups_of_micro_batches_that_only_megatron_can_set(searched: Callable[..., Plan]) -> None:
    plan = searched("quickstart", {"schedules": ["interleaved_1f1b"]})
    assert plan.pipeline.num_micro_batches % plan.pipeline.pp
    export = export_plan(plan, "plan.json", "megatron")
    assert export.settings["microbatch_group_size_per_virtual_pipeline_stage"] == 8
    for framework in ("ms-swift", "colossalai"):
        assert any("num_micro_batches" in line for line in reasons(plan, framework))


def test_mindspeed_llm_on_other_hardware(searched: Callable[..., Plan]) -> None:
    assert any("runs on Ascend" in line and "nvidia" in line for line in reasons(searched("setting5"), "mindspeed-llm"))


def test_uneven_chunks_of_an_older_mindspeed_llm(searched: Callable[..., Plan]) -> None:
    plan = searched("setting2", {"schedules": ["interleaved_1f1b"]})
    assert any("26.1 or later, or --schedule 1f1b" in line for line in reasons(plan, "mindspeed-llm", "2.3.0"))


def test_experts_under_tp_without_sequence_parallelism(searched: Callable[..., Plan]) -> None:
    plan = changed_training(searched("setting4"), sequence_parallel=False)
    for framework in ("megatron", "mindspeed-llm", "flagscale", "ms-swift"):
        assert any("sequence_parallel: true" in line for line in reasons(plan, framework))


@pytest.mark.parametrize("framework", ["hexiscale", "colossalai"])
def test_experts(searched: Callable[..., Plan], framework: str) -> None:
    assert any("inputs.model.moe" in line for line in reasons(searched("setting4"), framework))


class TestFlagScale:
    def test_ranks_of_a_host_in_pieces(self, searched: Callable[..., Plan]) -> None:
        plan = searched("quickstart", {}, {"assignment": "stage"})
        assert any("--assignment node" in line for line in reasons(plan, "flagscale"))

    def test_devices_that_are_not_the_first(self, searched: Callable[..., Plan]) -> None:
        plan = with_idle_first_devices(searched("setting1", {}, HALF))
        assert any("uses a host's first devices" in line for line in reasons(plan, "flagscale"))
        assert export_plan(plan, "plan.json", "megatron").places[0].device_list == "4,5,6,7"

    def test_several_degrees_on_one_host(self, searched: Callable[..., Plan]) -> None:
        plan = searched("quickstart", {}, {"tp": "per-stage"})
        degrees = [(stage.nodes, stage.tp) for stage in plan.pipeline.stages]
        shared = [nodes for nodes, tp in degrees for others, other in degrees if nodes == others and tp != other]
        if shared:
            assert any("--tp per-type" in line for line in reasons(plan, "flagscale"))
        else:
            assert export_plan(plan, "plan.json", "flagscale")

    def test_unequal_tp_without_sequence_parallelism(self, searched: Callable[..., Plan]) -> None:
        plan = changed_training(searched(*PER_STAGE), sequence_parallel=False)
        assert any("sequence_parallel: true" in line for line in reasons(plan, "flagscale"))

    def test_tied_embeddings_of_unequal_tp(self, searched: Callable[..., Plan]) -> None:
        plan = changed_model(searched(*PER_STAGE), tied_embeddings=True)
        assert any("ties the embeddings" in line for line in reasons(plan, "flagscale"))


def with_idle_first_devices(plan: Plan) -> Plan:
    """The same plan on the last four devices of the node instead of the first four."""
    assert all(part.devices == (0, 1, 2, 3) for stage in plan.pipeline.stages for part in stage.devices)

    def last(part: Any) -> Any:
        return replace(part, devices=tuple(device + 4 for device in part.devices))

    stages = tuple(replace(s, devices=tuple(last(part) for part in s.devices)) for s in plan.pipeline.stages)
    nodes = plan.pipeline.stages[0].nodes
    idle = tuple(replace(p, devices=(0, 1, 2, 3)) if p.node in nodes else p for p in plan.pipeline.idle)
    return replace(plan, pipeline=replace(plan.pipeline, stages=stages, idle=idle))


def test_idle_devices_are_told_and_not_started(searched: Callable[..., Plan]) -> None:
    plan = searched("setting1", {}, HALF)
    assert plan.pipeline.idle
    for framework in ("megatron", "flagscale", "torchtitan"):
        export = export_plan(plan, "plan.json", framework)
        assert any("idle devices, on which nothing is started: node 0: 4-7, node 1: 0-7" in n for n in export.notes)
        assert sum(place.num_ranks for place in export.places) == plan.pipeline.num_devices


class TestTorchtitan:
    def test_tied_embeddings(self, searched: Callable[..., Plan]) -> None:
        plan = changed_model(searched("quickstart"), tied_embeddings=True)
        assert any("--fixed-pp 1" in line for line in reasons(plan, "torchtitan"))

    def test_half_precision(self, searched: Callable[..., Plan]) -> None:
        plan = changed_training(searched("quickstart"), precision="fp16")
        assert any("bf16" in line for line in reasons(plan, "torchtitan"))

    def test_an_older_release(self, searched: Callable[..., Plan]) -> None:
        assert any("0.3 or later" in line for line in reasons(searched("quickstart"), "torchtitan", "0.2.1"))


class TestHexiScale:
    def test_another_sequence_length(self, searched: Callable[..., Plan]) -> None:
        assert any("sequences of 4096, not of 2048" in line for line in reasons(searched("setting3"), "hexiscale"))

    def test_another_model(self, searched: Callable[..., Plan]) -> None:
        plan = changed_model(searched("quickstart"), vocab_size=128_256)
        assert any("no other model" in line for line in reasons(plan, "hexiscale"))

    def test_selective_recomputation(self, searched: Callable[..., Plan]) -> None:
        plan = searched("quickstart", {"recompute": "selective"})
        assert any("--recompute none or --recompute full" in line for line in reasons(plan, "hexiscale"))


class TestMsSwift:
    def test_releases_that_always_recompute(self, searched: Callable[..., Plan]) -> None:
        assert any("--recompute selective" in line for line in reasons(searched("quickstart"), "ms-swift", "3.12.2"))
        assert export_plan(searched("quickstart"), "plan.json", "ms-swift", "3.12.3")
        assert export_plan(searched("quickstart", {"recompute": "selective"}), "plan.json", "ms-swift", "3.12")

    def test_an_older_release(self, searched: Callable[..., Plan]) -> None:
        assert any("3.12 or later" in line for line in reasons(searched("quickstart"), "ms-swift", "3.5"))


@pytest.mark.parametrize("framework", ["flagscale", "hexiscale", "colossalai"])
def test_a_version_where_there_is_no_choice(searched: Callable[..., Plan], framework: str) -> None:
    [reason] = reasons(searched("quickstart"), framework, "1.0")
    assert reason.startswith("--framework-version: ")


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "colossalai", "ms-swift"])
def test_one_stage_of_several_chunks(searched: Callable[..., Plan], framework: str) -> None:
    """The search makes no such plan; a file may hold one."""
    plan = changed_training(
        searched("setting1", {}, {"allow_idle": True, "fixed_pp": 1}), schedules=("interleaved_1f1b",), num_chunks=(2,)
    )
    [stage] = plan.pipeline.stages
    half = replace(stage, layer_ranges=((0, 16), (16, 32)), forward_ms=(1.0, 1.0), backward_ms=(2.0, 2.0))
    pipeline = replace(plan.pipeline, schedule="interleaved_1f1b", num_chunks=2, stages=(half,))
    assert any("num_chunks" in line for line in reasons(replace(plan, pipeline=pipeline), framework))


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "colossalai", "ms-swift", "flagscale"])
def test_one_stage_has_no_split(searched: Callable[..., Plan], framework: str) -> None:
    plan = searched("setting1", {}, {"allow_idle": True, "fixed_pp": 1})
    export = export_plan(plan, "plan.json", framework)
    assert "layout" not in str(export.settings)
    assert "num_layers_per_stage" not in export.settings
