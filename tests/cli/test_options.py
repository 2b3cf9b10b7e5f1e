"""Command-line options against the settings that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from poseidon.cli.effort_options import EFFORT_FIELDS
from poseidon.cli.experiment_options import (
    ASSIGNMENTS,
    RECOMPUTE,
    SEARCH_FIELDS,
    TARGETS,
    TP_SCOPES,
    TRAINING_FIELDS,
    experiment_from,
)
from poseidon.cli.search import search
from poseidon.inputs.search import Assignment, CostModel, Policy, SearchSettings, Target, TpScope
from poseidon.inputs.training import RecomputeChoice, ScheduleName, Training
from poseidon.schedule import SCHEDULES
from poseidon.search.options import COST_MODELS, POLICIES, RIVALS, SearchOptions


def test_choices_are_those_of_the_settings() -> None:
    assert get_args(Assignment) == ASSIGNMENTS
    assert get_args(TpScope) == TP_SCOPES
    assert get_args(Target) == TARGETS
    assert get_args(RecomputeChoice) == RECOMPUTE
    assert get_args(Policy) == (*POLICIES, *RIVALS)
    assert get_args(CostModel) == COST_MODELS
    assert set(get_args(ScheduleName)) == set(SCHEDULES)


def test_every_search_setting_has_an_option() -> None:
    assert set(SEARCH_FIELDS) == set(SearchSettings.model_fields)
    assert set(TRAINING_FIELDS) <= set(Training.model_fields)
    assert set(EFFORT_FIELDS) <= set(SearchOptions.__dataclass_fields__)


GIVEN: dict[str, tuple[list[str], str, str, object]] = {
    "global batch": (["--global-batch-size", "32"], "training", "global_batch_size", 32),
    "sequence": (["--seq-length", "512"], "training", "seq_length", 512),
    "micro-batches": (
        ["--micro-batch-size", "1", "--micro-batch-size", "4"],
        "training",
        "micro_batch_sizes",
        (1, 4),
    ),
    "schedules": (["--schedule", "gpipe", "--schedule", "1f1b"], "training", "schedules", ("gpipe", "1f1b")),
    "chunks": (["--num-chunks", "4"], "training", "num_chunks", (4,)),
    "recompute": (["--recompute", "full"], "training", "recompute", "full"),
    "assignment": (["--assignment", "stage"], "search", "assignment", "stage"),
    "tp": (["--tp", "per-type"], "search", "tp", "per-type"),
    "idle": (["--allow-idle"], "search", "allow_idle", True),
    "target": (["--target", "megatron"], "search", "target", "megatron"),
    "dp degree": (["--fixed-dp", "2"], "search", "fixed_dp", 2),
    "tp degree": (["--fixed-tp", "2"], "search", "fixed_tp", 2),
    "pp degree": (["--fixed-pp", "2"], "search", "fixed_pp", 2),
    "memory": (["--max-memory-fraction", "0.5"], "search", "max_memory_fraction", 0.5),
    "policy": (["--policy", "paper"], "search", "policy", "paper"),
    "gap": (["--gap", "0.25"], "search", "gap", 0.25),
    "time limit": (["--time-limit", "7"], "search", "time_limit_s", 7.0),
    "node limit": (["--node-limit", "7"], "search", "node_limit", 7),
    "top": (["--top", "3"], "search", "top", 3),
    "seed": (["--seed", "3"], "search", "seed", 3),
    "warm-up": (["--warmup-samples", "0"], "search", "warmup_samples", 0),
    "stage pruning": (["--no-stage-pruning"], "search", "stage_pruning", False),
    "layer pruning": (["--no-layer-pruning"], "search", "layer_pruning", False),
}


def parsed(*arguments: str) -> dict[str, Any]:
    return search.make_context("search", list(arguments)).params


@pytest.mark.parametrize("case", GIVEN)
def test_an_option_goes_before_the_file(write_experiment: Callable[..., Path], case: str) -> None:
    arguments, part, field, value = GIVEN[case]
    experiment = experiment_from(parsed(str(write_experiment()), *arguments))
    assert getattr(getattr(experiment, part), field) == value


def test_the_file_decides_where_no_option_is_given(write_experiment: Callable[..., Path]) -> None:
    path = write_experiment(search={"allow_idle": True, "stage_pruning": False, "gap": 0.125, "seed": 9})
    settings = experiment_from(parsed(str(path))).search
    assert (settings.allow_idle, settings.stage_pruning, settings.gap, settings.seed) == (True, False, 0.125, 9)


def test_an_experiment_without_a_file(tmp_path: Path, write_experiment: Callable[..., Path]) -> None:
    import yaml

    whole = yaml.safe_load(write_experiment().read_text())
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(whole["model"]))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(whole["cluster"]))
    files = ["--model", str(tmp_path / "model.yaml"), "--cluster", str(tmp_path / "cluster.yaml")]
    experiment = experiment_from(parsed(*files, "--global-batch-size", "16", "--seq-length", "1024", "--gap", "0.5"))
    assert experiment.model.num_layers == 8
    assert experiment.training.global_batch_size == 16
    assert experiment.search.gap == 0.5
