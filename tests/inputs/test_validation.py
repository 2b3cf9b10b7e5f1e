from __future__ import annotations

from typing import Any

import pytest

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.field_path import field_path
from poseidon.inputs.limits import MAX_MISTAKES
from poseidon.inputs.links import Link
from poseidon.inputs.search import SearchSettings
from poseidon.inputs.training import Training
from poseidon.inputs.validation import validate

TRAINING = {"global_batch_size": 32, "seq_length": 128}


def mistakes(model_class: Any, data: Any) -> dict[str, str]:
    """Field path to message of all mistakes; later ones of the same field are appended."""
    with pytest.raises(InputError) as caught:
        validate(model_class, data, "f.yaml")
    result: dict[str, str] = {}
    for mistake in caught.value.mistakes:
        assert mistake.file == "f.yaml"
        assert str(mistake).isprintable()
        result[mistake.field] = (
            f"{result[mistake.field]}; {mistake.message}" if mistake.field in result else mistake.message
        )
    return result


def test_a_field_path_joins_keys_and_indices() -> None:
    assert field_path(("nodes", 0, "devices")) == "nodes[0].devices"
    assert field_path(("accelerators", "A2-2", "memory_gb")) == "accelerators.A2-2.memory_gb"
    assert field_path(("accelerators", "RTX 4090 (24 GB)")) == "accelerators['RTX 4090 (24 GB)']"
    assert field_path(()) == ""


def test_a_mistake_reads_file_then_field_then_what_is_wrong() -> None:
    with pytest.raises(InputError) as caught:
        validate(Link, {"bandwidth_gbps": -5}, "c.yaml", ("links", "inter_node"))
    assert str(caught.value) == "c.yaml: links.inter_node.bandwidth_gbps: -5 is too small: at least 0.001 is accepted"


def test_an_unknown_key_is_reported_with_the_nearest_known_one() -> None:
    assert mistakes(Training, {**TRAINING, "shedules": ["gpipe"]}) == {
        "": "unknown key 'shedules'; did you mean 'schedules'?"
    }


def test_a_misspelt_required_key_is_not_reported_as_missing_too() -> None:
    data = {"global_bacth_size": 32, "seq_length": 128}
    assert mistakes(Training, data) == {"": "unknown key 'global_bacth_size'; did you mean 'global_batch_size'?"}


def test_an_unknown_key_without_a_near_one_is_reported_with_all_known_ones() -> None:
    message = "unknown key 'speed'; the known keys are bandwidth_gbps, latency_us, shared_by"
    assert mistakes(Link, {"bandwidth_gbps": 1, "speed": 2}) == {"": message}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("global_batch_size", "32", "expected a whole number, got the text '32'"),
        ("global_batch_size", 32.0, "expected a whole number, got 32.0"),
        ("global_batch_size", True, "expected a whole number, got True"),
        ("global_batch_size", None, "expected a whole number, got nothing"),
        ("global_batch_size", [32], "expected a whole number, got a list"),
        ("global_batch_size", 0, "0 is too small: at least 1 is accepted"),
        ("global_batch_size", 10**30, "a number of about 1e30 is too large: at most 1,000,000 is accepted"),
        ("seq_length", -(10**300), "a number of about -1e300 is too small: at least 1 is accepted"),
        ("micro_batch_sizes", 1, "expected a list, got 1"),
        ("micro_batch_sizes", [], "has 0 entries: at least 1 is accepted"),
        ("micro_batch_sizes", list(range(1, 66)), "has more entries than accepted: at most 64"),
        ("distributed_optimizer", "yes", "expected true or false, got the text 'yes'"),
        ("memory_reserve_fraction", "a lot", "expected a number, got the text 'a lot'"),
        ("memory_reserve_fraction", 1e300, "1e+300 is too large: at most 0.9 is accepted"),
        ("precision", "bf61", "'bf61' is not known; did you mean 'bf16'? accepted: bf16, fp16, fp32"),
        ("recompute", 3, "3 is not known; accepted: none, selective, full, auto"),
    ],
)
def test_a_wrong_value_is_reported_in_plain_words(key: str, value: Any, message: str) -> None:
    assert mistakes(Training, {**TRAINING, key: value}) == {key: message}


def test_an_infinite_or_undefined_number_never_passes() -> None:
    for value in (float("inf"), float("-inf"), float("nan")):
        assert list(mistakes(Link, {"bandwidth_gbps": value})) == ["bandwidth_gbps"]
        assert list(mistakes(Link, {"bandwidth_gbps": 1, "latency_us": value})) == ["latency_us"]


def test_what_is_no_mapping_is_reported() -> None:
    assert mistakes(SearchSettings, 3) == {"": "expected a mapping of keys to values, got 3"}
    assert mistakes(SearchSettings, None) == {"": "expected a mapping of keys to values, got nothing"}


def test_all_mistakes_of_a_cluster_are_reported_together(cluster_data: dict[str, Any]) -> None:
    cluster_data["accelerators"]["fast"]["memory_gb"] = "64 GB"
    cluster_data["accelerators"]["slow"]["usable_memory_gb"] = 33
    cluster_data["accelerators"]["bad\nname"] = {"peak_tflops": 1, "memory_gb": 1}
    cluster_data["nodes"][0]["devices"] = 0
    cluster_data["nodes"][1]["accelerator"] = "slov"
    cluster_data["links"]["cross_cluster"]["bandwidth_gbps"] = -75
    cluster_data["links"]["intra_node"]["bandwith_gbps"] = 1
    cluster_data["comunication"] = []
    assert mistakes(Cluster, cluster_data) == {
        "": "unknown key 'comunication'; did you mean 'communication'?",
        "accelerators.fast.memory_gb": "expected a number, got the text '64 GB'",
        "accelerators.slow.usable_memory_gb": "33 GB is more than the device's memory_gb, 32 GB",
        "accelerators": r"'bad\nname' is not a name: has characters that cannot be printed",
        "nodes[0].devices": "0 is too small: at least 1 is accepted",
        "nodes[1].accelerator": "accelerator 'slov' is not declared; did you mean 'slow'?",
        "links.cross_cluster.bandwidth_gbps": "-75 is too small: at least 0.001 is accepted",
        "links.intra_node": "unknown key 'bandwith_gbps'; did you mean 'bandwidth_gbps'?",
    }


def test_a_file_of_endless_mistakes_is_cut_short(cluster_data: dict[str, Any]) -> None:
    cluster_data["nodes"] = [{"accelerator": "fast", "count": 1, "devices": 0}] * 500
    with pytest.raises(InputError) as caught:
        validate(Cluster, cluster_data, "f.yaml")
    assert len(caught.value.mistakes) == MAX_MISTAKES + 1
    assert caught.value.mistakes[-1] == Mistake("f.yaml", "", "and 450 more mistakes")


def test_records_are_frozen() -> None:
    link = validate(Link, {"bandwidth_gbps": 1}, "f.yaml")
    with pytest.raises(ValueError, match="frozen"):
        link.bandwidth_gbps = 2  # type: ignore[misc]
