from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.inputs.experiment import build_experiment, experiment_from_resolved, load_experiment

Write = Callable[[str, Any], Path]


def change(path: Path, **parts: Any) -> Path:
    """Changes top-level keys of a YAML file; None removes one."""
    data = {**yaml.safe_load(path.read_text()), **parts}
    path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}))
    return path


def lines(path: Path, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_experiment(path, **options)
    return [str(mistake).replace(f"{path.parent.parent}/", "") for mistake in caught.value.mistakes]


def test_an_experiment_is_loaded_with_all_its_files(experiment_path: Path) -> None:
    experiment = load_experiment(experiment_path)
    assert experiment.name == "small"
    assert (experiment.model.name, experiment.cluster.name) == ("tiny", "two-types")
    assert experiment.training.global_batch_size == 32
    assert experiment.profile == "analytic"
    assert experiment.search.policy == "exact"
    root = experiment_path.parent
    assert list(experiment.files) == ["small.yaml", "../models/tiny.yaml", "../clusters/two-types.yaml"]
    for key, sha256 in experiment.files.items():
        assert hashlib.sha256((root / key).read_bytes()).hexdigest() == sha256


def test_files_are_named_the_same_wherever_the_command_runs(
    experiment_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_experiment(experiment_path)
    monkeypatch.chdir(experiment_path.parent)
    assert load_experiment(experiment_path.name) == experiment


def test_model_and_cluster_may_stand_in_the_experiment_file(
    experiment_path: Path, model_data: dict[str, Any], cluster_data: dict[str, Any], write: Write
) -> None:
    expected = load_experiment(experiment_path)
    write("accelerators/fast.yaml", cluster_data["accelerators"]["fast"])
    cluster_data["accelerators"]["fast"] = "../accelerators/fast.yaml"
    change(experiment_path, model={"name": "tiny", **model_data}, cluster=cluster_data)
    experiment = load_experiment(experiment_path)
    assert (experiment.model, experiment.cluster) == (expected.model, expected.cluster)
    assert list(experiment.files) == ["small.yaml", "../accelerators/fast.yaml"]


def test_a_resolved_experiment_is_rebuilt_exactly_from_json(experiment_path: Path) -> None:
    change(experiment_path, search={"gap": 0.1, "time_limit_s": 1 / 3, "fixed_tp": 2})
    experiment = load_experiment(experiment_path)
    resolved = experiment.resolved()
    assert experiment_from_resolved(json.loads(json.dumps(resolved))) == experiment
    assert experiment_from_resolved(resolved).resolved() == resolved


def test_a_resolved_experiment_that_was_changed_is_checked_again(experiment_path: Path) -> None:
    resolved = load_experiment(experiment_path).resolved()
    resolved["cluster"]["nodes"][0]["devices"] = 0
    resolved["search"]["polcy"] = "exact"
    with pytest.raises(InputError) as caught:
        experiment_from_resolved(resolved, "plan.json")
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "plan.json: cluster.nodes[0].devices: 0 is too small: at least 1 is accepted",
        "plan.json: search: unknown key 'polcy'; did you mean 'policy'?",
    ]


def test_options_replace_the_values_of_the_file(experiment_path: Path, write: Write) -> None:
    change(experiment_path, search={"gap": 0.1, "seed": 3}, profile="none.json")
    profile = write("profile.json", "{}")
    experiment = load_experiment(
        experiment_path, training={"schedules": ["gpipe"]}, search={"gap": 0.0}, profile=str(profile)
    )
    assert experiment.training.schedules == ("gpipe",)
    assert experiment.training.seq_length == 128
    assert (experiment.search.gap, experiment.search.seed) == (0.0, 3)
    assert experiment.profile == str(profile)


def test_a_profile_is_relative_to_the_file_and_can_be_opened(experiment_path: Path, write: Write) -> None:
    write("profiles/p.json", '{"schema": "poseidon.profile/1"}')
    experiment = load_experiment(change(experiment_path, profile="../profiles/p.json"))
    assert json.loads(Path(experiment.profile).read_text()) == {"schema": "poseidon.profile/1"}
    assert "../profiles/p.json" in experiment.files


def test_an_experiment_is_built_without_a_file(experiment_path: Path) -> None:
    root = experiment_path.parent.parent
    experiment = build_experiment(root / "models/tiny.yaml", root / "clusters/two-types.yaml", 32, 128)
    loaded = load_experiment(experiment_path)
    assert experiment.name == "tiny on two-types"
    assert experiment.model_copy(update={"name": loaded.name, "files": loaded.files}) == loaded


def test_mistakes_on_the_command_line_are_named_so() -> None:
    with pytest.raises(InputError) as caught:
        build_experiment("none.yaml", "gone.yaml", 0, 128, search={"gap": 2})
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "command line: model: none.yaml: no such file",
        "command line: cluster: gone.yaml: no such file",
        "command line: training.global_batch_size: 0 is too small: at least 1 is accepted",
        "command line: search.gap: 2 is too large: less than 1 is accepted",
    ]


def test_the_mistakes_of_all_files_are_reported_together(experiment_path: Path, write: Write) -> None:
    write("models/tiny.yaml", {"num_layers": 4})
    change(experiment_path.parent.parent / "clusters/two-types.yaml", nodes=[], colour="red")
    change(experiment_path, training={"global_batch_size": "many", "seq_length": 128}, profile="none.json", searhc={})
    assert lines(experiment_path) == [
        "models/tiny.yaml: hidden_size: is missing",
        "models/tiny.yaml: ffn_hidden_size: is missing",
        "models/tiny.yaml: num_attention_heads: is missing",
        "models/tiny.yaml: vocab_size: is missing",
        "clusters/two-types.yaml: unknown key 'colour'; the known keys are name, accelerators, nodes, links, "
        "cluster_links, communication",
        "clusters/two-types.yaml: nodes: has 0 entries: at least 1 is accepted",
        "experiments/small.yaml: profile: experiments/none.json: no such file",
        "experiments/small.yaml: unknown key 'searhc'; did you mean 'search'?",
        "experiments/small.yaml: training.global_batch_size: expected a whole number, got the text 'many'",
    ]


@pytest.mark.parametrize("value", [3, "", ["a"], True])
def test_a_model_must_be_a_path_or_a_mapping(experiment_path: Path, value: Any) -> None:
    (line,) = lines(change(experiment_path, model=value))
    assert line == f"experiments/small.yaml: model: expected the path of a file or a mapping, got {value!r}"


def test_missing_parts_are_named(experiment_path: Path) -> None:
    assert lines(change(experiment_path, model=None, cluster=None, training=None)) == [
        "experiments/small.yaml: model: is missing",
        "experiments/small.yaml: cluster: is missing",
        "experiments/small.yaml: training: is missing",
    ]


def test_a_sequence_longer_than_the_learned_positions_is_refused(experiment_path: Path) -> None:
    change(experiment_path.parent.parent / "models/tiny.yaml", max_position_embeddings=64)
    assert lines(experiment_path) == [
        "experiments/small.yaml: training.seq_length: 128 is longer than the model's learned positions: at most 64 is "
        "accepted"
    ]


def test_fixed_degrees_must_be_possible(experiment_path: Path) -> None:
    search = {"fixed_tp": 12, "fixed_pp": 5, "fixed_dp": 3}
    assert lines(experiment_path, search=search) == [
        "experiments/small.yaml: search.fixed_tp: 12 does not divide the model's 4 attention heads",
        "experiments/small.yaml: search.fixed_tp: a TP group stays in one node, and 12 is more than the 8 devices "
        "of the largest node",
        "experiments/small.yaml: search.fixed_pp: 5 stages are more than the model's 4 layers",
        "experiments/small.yaml: search.fixed_dp: 3 x micro-batch divides the global batch 32 for none of "
        "micro_batch_sizes [1, 2, 4]",
        "experiments/small.yaml: search: the fixed degrees need 180 devices; the cluster has 16",
    ]


def test_vendors_that_cannot_talk_are_refused_with_what_would_help(
    experiment_path: Path, cluster_data: dict[str, Any]
) -> None:
    cluster_data["accelerators"]["fast"]["vendor"] = "nvidia"
    cluster_data["accelerators"]["slow"]["vendor"] = "huawei"
    change(experiment_path, cluster=cluster_data)
    (line,) = lines(experiment_path)
    assert line.startswith("experiments/small.yaml: cluster.communication: accelerators of vendor 'huawei' cannot talk")
    assert "add `communication: [[nvidia, huawei]]`" in line
    assert load_experiment(experiment_path, search={"allow_idle": True}).search.allow_idle
    cluster_data["communication"] = [["nvidia", "huawei"]]
    assert load_experiment(change(experiment_path, cluster=cluster_data)).cluster.num_devices == 16


def test_vendors_may_talk_through_a_third(experiment_path: Path, cluster_data: dict[str, Any]) -> None:
    for name, vendor in (("fast", "a"), ("slow", "b"), ("middle", "c")):
        cluster_data["accelerators"].setdefault(name, {"peak_tflops": 1, "memory_gb": 1})["vendor"] = vendor
    cluster_data["nodes"].append({"accelerator": "middle", "count": 1, "devices": 1})
    cluster_data["communication"] = [["a", "c"], ["b", "c"]]
    assert load_experiment(change(experiment_path, cluster=cluster_data)).cluster.num_devices == 17
