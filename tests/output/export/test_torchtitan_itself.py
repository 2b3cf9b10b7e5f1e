"""The exported module, read by torchtitan (``pip install torch torchtitan``)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from poseidon.output.export import export_plan, write_files
from poseidon.plan.plan import Plan

pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    manager: Any = pytest.importorskip("torchtitan.config.manager", exc_type=ImportError)
    pipelines: Any = pytest.importorskip("torchtitan.distributed.pipeline_parallel", exc_type=ImportError)

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

BASE = "torchtitan.models.llama3.config_registry:llama3_8b"
"""32 layers, as setting 1's model."""


@pytest.fixture
def configured(
    searched: Callable[..., Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Plan, Any]]]:
    """A plan, and what torchtitan makes of the command line that launch.sh gives it."""

    def configure(*case: Any, base: str = BASE) -> tuple[Plan, Any]:
        plan = searched(*case)
        write_files(export_plan(plan, "plan.json", "torchtitan").files, tmp_path)
        monkeypatch.setenv("BASE_CONFIG", base)
        monkeypatch.syspath_prepend(tmp_path)
        return plan, manager.ConfigManager().parse_args(["--module", "poseidon_plan", "--config", "planned"])

    yield configure
    sys.modules.pop("poseidon_plan", None)


@pytest.mark.parametrize(
    "training",
    [{}, {"schedules": ["interleaved_1f1b"]}, {"schedules": ["adaptive_1f1b"]}, {"recompute": "full"}],
    ids=str,
)
def test_torchtitan_reads_the_plan(configured: Callable[..., tuple[Plan, Any]], tmp_path: Path, training: Any) -> None:
    plan, config = configured("setting1", training)
    pipeline, parallelism = plan.pipeline, config.parallelism
    assert parallelism.pipeline_parallel_degree == pipeline.pp
    assert parallelism.tensor_parallel_degree == pipeline.stages[0].tp
    assert parallelism.data_parallel_shard_degree == pipeline.dp
    assert parallelism.pipeline_parallel_schedule_csv == str(tmp_path / "schedule.csv")
    assert config.training.seq_len == plan.experiment.training.seq_length
    assert (config.activation_checkpoint is None) == (pipeline.recompute == "none")
    batches = config.training.local_batch_size, parallelism.pipeline_parallel_microbatch_size
    assert batches[0] // batches[1] == pipeline.num_micro_batches


def test_torchtitan_puts_the_plans_layers_on_each_rank(configured: Callable[..., tuple[Plan, Any]]) -> None:
    """Its own functions say which parts a rank holds, and cut a module to a part."""
    torch: Any = pytest.importorskip("torch")
    plan, config = configured("setting1", {"schedules": ["interleaved_1f1b"]})
    pipeline, parallelism = plan.pipeline, config.parallelism
    whole = torch.nn.Module()
    whole.tok_embeddings, whole.norm, whole.lm_head = (torch.nn.Identity() for _ in range(3))
    whole.layers = torch.nn.ModuleDict({str(layer): torch.nn.Identity() for layer in range(32)})
    parts = parallelism.module_fqns_per_model_part
    for rank, stage in enumerate(pipeline.stages):
        held = pipelines._get_pp_rank_to_stage_indices_mapping(
            rank, pipeline.pp, parallelism.pipeline_parallel_schedule, len(parts)
        )
        for (first, end), part in zip(stage.layer_ranges, held, strict=True):
            cut = pipelines._split_module(whole, parts[part])
            assert [int(layer) for layer in cut.layers] == list(range(first, end))
            assert (cut.tok_embeddings is not None) == (first == 0)
            assert (cut.lm_head is not None) == (end == 32)


def test_another_number_of_layers_is_refused(configured: Callable[..., tuple[Plan, Any]]) -> None:
    with pytest.raises(ValueError, match="the plan is for a model of 40 layers; this configuration's has 32"):
        configured("quickstart")
