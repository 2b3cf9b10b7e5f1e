"""Exported schedules, loaded by PyTorch's own pipeline runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from poseidon.output.export import export_plan, write_files
from poseidon.plan.plan import Plan
from poseidon.plan.timing import pipeline_order

schedules: Any = pytest.importorskip("torch.distributed.pipelining.schedules")
pytestmark = pytest.mark.torch

CASES: tuple[Any, ...] = (
    ("setting1",),
    ("quickstart",),
    ("quickstart", {"schedules": ["eager_1f1b"]}),
    ("quickstart", {"schedules": ["adaptive_1f1b"]}),
    ("quickstart", {"schedules": ["interleaved_1f1b"]}),
    ("quickstart", {"schedules": ["gpipe"], "recompute": "full", "global_batch_size": 16}),
)


def loaded(plan: Plan, directory: Path) -> Any:
    """PyTorch's runtime of rank 0, with the schedule; its stages exist in name only."""
    write_files(export_plan(plan, "plan.json", "torchtitan").files, directory)
    pipeline = plan.pipeline
    num_stages = pipeline.pp * pipeline.num_chunks
    stages = [
        SimpleNamespace(
            stage_index=chunk * pipeline.pp,
            num_stages=num_stages,
            group_size=pipeline.pp,
            group_rank=0,
            has_backward=True,
            is_first=chunk == 0,
            is_last=False,
            stage_index_to_group_rank={},
        )
        for chunk in range(pipeline.num_chunks)
    ]
    runtime = schedules._PipelineScheduleRuntime(stages, pipeline.num_micro_batches, loss_fn=lambda *_: None)
    runtime._load_csv(str(directory / "schedule.csv"))
    return runtime


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pytorch_loads_the_order_of_the_plan(searched: Callable[..., Plan], tmp_path: Path, case: Any) -> None:
    plan = searched(*case)
    runtime, pipeline = loaded(plan, tmp_path), plan.pipeline
    expected = [
        [action.staged(stage, pipeline.pp) for action in actions]
        for stage, actions in enumerate(pipeline_order(pipeline).stages)
    ]
    read = [[str(action) for action in runtime.pipeline_order[rank]] for rank in range(pipeline.pp)]
    assert read == expected
    assert runtime.stage_index_to_group_rank == {
        stage: stage % pipeline.pp for stage in range(pipeline.pp * pipeline.num_chunks)
    }


@pytest.mark.parametrize("case", CASES[:-1], ids=str)
def test_pytorch_finds_messages_for_the_order(searched: Callable[..., Plan], tmp_path: Path, case: Any) -> None:
    """Its own simulation ends: with the sends and receives that it adds, nobody waits for ever."""
    plan = searched(*case)
    runtime, num_stages = loaded(plan, tmp_path), plan.pipeline.pp * plan.pipeline.num_chunks
    others = ("UNSHARD", "RESHARD", "REDUCE_GRAD")
    order = {
        rank: [action for action in actions if not str(action).endswith(others)]
        for rank, actions in runtime.pipeline_order_with_comms.items()
    }
    stage_to_rank = {stage: stage % plan.pipeline.pp for stage in range(num_stages)}
    simulated = schedules._simulate_comms_compute(order, lambda stage: stage_to_rank[stage], num_stages)
    assert sum(action is not None for actions in simulated.values() for action in actions) == sum(
        map(len, order.values())
    )


def test_pytorch_refuses_a_damaged_schedule(searched: Callable[..., Plan], tmp_path: Path) -> None:
    plan = searched("setting1")
    runtime = loaded(plan, tmp_path)
    path = tmp_path / "schedule.csv"
    path.write_text(path.read_text().replace("1F3", "1B3", 1))
    with pytest.raises((AssertionError, ValueError)):
        runtime._load_csv(str(path))
