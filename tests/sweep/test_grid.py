from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment
from poseidon.sweep.grid import Refusal, Run, expand
from poseidon.sweep.sweep import Sweep, load_sweep

Build = Callable[..., tuple[Sweep, tuple[Run, ...]]]


def experiment(run: Run) -> Experiment:
    assert isinstance(run.content, Experiment), run.content
    return run.content


def test_the_grid_is_the_product_of_the_axes_the_last_one_fastest(sweep_of: Build) -> None:
    _, runs = sweep_of(axes={"training.global_batch_size": [16, 32], "search.policy": ["exact", "paper"]})
    assert [run.number for run in runs] == [0, 1, 2, 3]
    assert [(e.training.global_batch_size, e.search.policy) for e in map(experiment, runs)] == [
        (16, "exact"),
        (16, "paper"),
        (32, "exact"),
        (32, "paper"),
    ]
    assert runs[1].name == "global_batch_size=16, policy=paper"


def test_points_change_several_fields_together_and_axes_go_before_the_common_changes(sweep_of: Build) -> None:
    points = [{"label": "base"}, {"label": "big", "set": {"cluster.nodes.0.count": 3, "search.time_limit_s": 5}}]
    _, runs = sweep_of(axes={"size": {"points": points}}, set={"search.time_limit_s": 60, "search.seed": 7})
    base, big = map(experiment, runs)
    assert (base.cluster.nodes[0].count, base.search.time_limit_s, base.search.seed) == (1, 60, 7)
    assert (big.cluster.nodes[0].count, big.search.time_limit_s, big.search.seed) == (3, 5, 7)


def test_parts_are_replaced_by_files_beside_the_sweep_and_then_changed(sweep_of: Build, tmp_path: Path) -> None:
    (tmp_path / "sweeps").mkdir()
    cluster = yaml.safe_load((Path(__file__).parents[2] / "configs/clusters/npu-2x2.yaml").read_text())
    cluster["accelerators"] = {name: {"peak_tflops": 300, "memory_gb": 64} for name in cluster["accelerators"]}
    (tmp_path / "sweeps" / "other.yaml").write_text(yaml.safe_dump(cluster))
    axes = {"cluster": ["other.yaml"], "nodes": {"field": "cluster.nodes[0].count", "values": [1, 5]}}
    _, runs = sweep_of(axes=axes)
    assert [[group.count for group in experiment(run).cluster.nodes] for run in runs] == [[1, 2], [5, 2]]
    assert set(experiment(runs[0]).files) == {"../example.yaml", "other.yaml"}


def test_the_base_experiment_can_be_an_axis(sweep_of: Build, write_experiment: Callable[..., Path]) -> None:
    write_experiment("longer.yaml", training={"seq_length": 2048})
    _, runs = sweep_of(axes={"experiment": ["../example.yaml", "../longer.yaml"]})
    assert [experiment(run).training.seq_length for run in runs] == [1024, 2048]
    assert [run.labels for run in runs] == [("example",), ("longer",)]


def test_a_new_accelerator_may_be_a_file_beside_the_sweep(sweep_of: Build, tmp_path: Path) -> None:
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "new.yaml").write_text("{peak_tflops: 500, memory_gb: 80}")
    added = {
        "cluster.accelerators.new": "new.yaml",
        "cluster.nodes.2": {"accelerator": "new", "count": 1, "devices": 2},
    }
    _, runs = sweep_of(axes={"added": {"points": [{"label": "none"}, {"label": "new", "set": added}]}})
    without, with_new = map(experiment, runs)
    assert (without.cluster.num_devices, with_new.cluster.num_devices) == (4, 6)
    assert with_new.cluster.accelerators["new"].peak_tflops == 500
    assert "new.yaml" in with_new.files


def test_a_refused_value_is_a_run_with_the_reason(sweep_of: Build) -> None:
    _, runs = sweep_of(axes={"training.global_batch_size": [16, 0]})
    assert isinstance(runs[0].content, Experiment)
    assert isinstance(runs[1].content, Refusal)
    assert "training.global_batch_size: 0 is too small" in runs[1].content.reason


def test_parts_that_fit_only_after_all_changes_are_no_mistake(sweep_of: Build, tmp_path: Path) -> None:
    """The base asks for four devices more than the smaller cluster has; the point changes both."""
    small = {"cluster.nodes": [{"accelerator": "fast", "count": 1, "devices": 2}], "search.fixed_pp": 2}
    points = [{"label": "base"}, {"label": "small", "set": small}]
    _, runs = sweep_of(axes={"size": {"points": points}}, set={"search.fixed_pp": 4})
    assert [experiment(run).search.fixed_pp for run in runs] == [4, 2]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"axes": {"training.global_batch": [16]}}, "did you mean 'global_batch_size'?"),
        ({"axes": {"b": {"field": "cluster.nodes.7.count", "values": [1]}}}, "cluster.nodes has no entry 7"),
        ({"set": {"search.polcy": "exact"}}, "did you mean 'policy'?"),
        ({"axes": {"training.global_batch_size": [0, -1]}}, "0 is too small"),
        ({"experiment": "../nowhere.yaml"}, "nowhere.yaml: no such file"),
        ({"axes": {"search.seed": list(range(200)), "search.top": list(range(1, 201))}}, "at most 20,000"),
    ],
)
def test_a_sweep_without_any_run_is_refused(
    write_sweep: Callable[..., Path], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=r"sweeps/small\.yaml: ") as refusal:
        expand(load_sweep(write_sweep(**keys)))
    assert message in str(refusal.value)


def test_the_identity_follows_the_inputs(
    write_sweep: Callable[..., Path],
    write_experiment: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def identities(path: Path, **keys: Any) -> list[str]:
        return [run.identity for run in expand(load_sweep(path))]

    first = identities(write_sweep())
    assert len(set(first)) == 2
    assert identities(write_sweep(axes={"training.global_batch_size": [32, 64, 16]})) == [
        first[1],
        *identities(write_sweep(axes={"training.global_batch_size": [64]})),
        first[0],
    ]
    monkeypatch.chdir(tmp_path)
    assert identities(Path(os.path.relpath(write_sweep()))) == first
    write_experiment(training={"seq_length": 512})
    assert not set(identities(write_sweep())) & set(first)


def test_a_profile_counts_by_its_content(
    write_sweep: Callable[..., Path],
    write_experiment: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    write_experiment()
    (tmp_path / "profile.json").write_text(json.dumps({"a": 1}))
    path = write_sweep(axes={"profile": ["analytic", "../profile.json"]})
    analytic, measured = (run.identity for run in expand(load_sweep(path)))
    assert analytic != measured
    assert experiment(expand(load_sweep(path))[1]).profile == str(tmp_path / "profile.json")
    monkeypatch.chdir(path.parent)
    assert expand(load_sweep(path.name))[1].identity == measured
    (tmp_path / "profile.json").write_text(json.dumps({"a": 2}))
    assert expand(load_sweep(path.name))[1].identity != measured
    assert expand(load_sweep(path.name))[0].identity == analytic


def test_points_of_the_same_inputs_are_the_same_run(sweep_of: Build) -> None:
    points = [{"label": "as it is"}, {"label": "the same", "set": {"search.seed": 0}}]
    _, runs = sweep_of(axes={"x": {"points": points}})
    assert runs[0].identity == runs[1].identity
