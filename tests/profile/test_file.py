from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment
from poseidon.profile import (
    LayerKey,
    MeasuredAllReduce,
    MeasuredTransfer,
    Profile,
    RowKey,
    analytic_profile,
    load_profile,
    profile_to_json,
    read_profile,
    write_profile,
)


@pytest.fixture
def profile(make_experiment: Callable[..., Experiment]) -> Profile:
    analytic = analytic_profile(make_experiment(), recompute=["none", "full"])
    return replace(
        analytic,
        transfers=(MeasuredTransfer("fast", "slow", "inter_node", 1e6, 0.5),),
        all_reduce=(MeasuredAllReduce("fast", 1, 2, "intra_node", 1e6, 0.25),),
    )


def test_a_profile_comes_back_from_its_file_unchanged(profile: Profile, tmp_path: Path) -> None:
    write_profile(profile, tmp_path / "profile.json")

    assert read_profile(tmp_path / "profile.json") == profile


def test_the_file_has_the_contract_s_fields(profile: Profile) -> None:
    data = profile_to_json(profile)

    assert data["schema"] == "poseidon.profile/1"
    contract = {
        "accelerator",
        "tp",
        "micro_batch_size",
        "layer_type",
        "forward_ms",
        "backward_ms",
        "weight_bytes",
        "activation_bytes",
    }
    for part in ("layers", "embedding", "head"):
        assert contract <= set(data[part][0])
    assert set(data["transfers"][0]) == {"from", "to", "link", "bytes", "ms"}
    assert set(data["all_reduce"][0]) == {"accelerator", "tp", "dp", "link", "bytes", "ms"}


def test_rows_that_do_not_say_were_measured_as_the_experiment_trains(profile: Profile, tmp_path: Path) -> None:
    data = profile_to_json(replace(profile, layers=dict(list(profile.layers.items())[:1])))
    del data["layers"][0]["recompute"]
    (tmp_path / "profile.json").write_text(json.dumps(data), encoding="utf-8")

    assert list(read_profile(tmp_path / "profile.json", "full").layers) == [
        LayerKey(RowKey("fast", 1, 1), "dense", "full")
    ]


def test_every_mistake_of_a_file_is_reported(profile: Profile, tmp_path: Path) -> None:
    data = profile_to_json(profile)
    data["layers"][0]["forward_ms"] = -1
    data["head"][0]["tp"] = "two"
    del data["embedding"][0]["weight_bytes"]
    (tmp_path / "profile.json").write_text(json.dumps(data), encoding="utf-8")

    with pytest.raises(InputError) as error:
        read_profile(tmp_path / "profile.json")

    fields = {mistake.field for mistake in error.value.mistakes}
    assert fields == {"layers[0].forward_ms", "head[0].tp", "embedding[0].weight_bytes"}


def test_a_file_of_another_kind_is_refused(profile: Profile, tmp_path: Path) -> None:
    data = profile_to_json(profile) | {"schema": "poseidon.plan/1"}
    (tmp_path / "plan.json").write_text(json.dumps(data), encoding="utf-8")

    with pytest.raises(InputError, match=r"schema: is not a profile: schema 'poseidon\.profile/1' is expected"):
        read_profile(tmp_path / "plan.json")


def test_a_row_given_twice_is_refused(profile: Profile, tmp_path: Path) -> None:
    data = profile_to_json(profile)
    data["head"].append(data["head"][0])
    (tmp_path / "profile.json").write_text(json.dumps(data), encoding="utf-8")

    with pytest.raises(InputError, match=r"head\[8\]: the row for \(accelerator fast, tp 1, .*\) is given twice"):
        read_profile(tmp_path / "profile.json")


def test_a_profile_of_another_sequence_length_is_refused(
    profile: Profile, tmp_path: Path, make_experiment: Callable[..., Experiment]
) -> None:
    path = tmp_path / "profile.json"
    write_profile(replace(profile, seq_length=2048), path)
    experiment = make_experiment().model_copy(update={"profile": str(path)})

    with pytest.raises(InputError, match="seq_length: is 2048, but the experiment trains with 4"):
        load_profile(experiment)


def test_an_experiment_gets_the_profile_it_names(
    profile: Profile, tmp_path: Path, make_experiment: Callable[..., Experiment]
) -> None:
    path = tmp_path / "profile.json"
    write_profile(profile, path)

    assert load_profile(make_experiment().model_copy(update={"profile": str(path)})) == profile
    assert load_profile(make_experiment()) == analytic_profile(make_experiment())
