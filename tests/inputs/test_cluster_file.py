from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.cluster_file import load_cluster

Write = Callable[[str, Any], Path]


def lines(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_cluster(path)
    return [str(mistake).replace(f"{path.parent.parent}/", "") for mistake in caught.value.mistakes]


def test_an_accelerator_may_be_the_path_of_a_file(write: Write, cluster_data: dict[str, Any]) -> None:
    write("accelerators/x.yaml", {"peak_tflops": 376, "memory_gb": 64, "vendor": "huawei"})
    cluster_data["accelerators"]["fast"] = "../accelerators/x.yaml"
    cluster = load_cluster(write("clusters/c.yaml", cluster_data))
    assert cluster.accelerators["fast"] == Accelerator(peak_tflops=376, memory_gb=64, vendor="huawei")


def test_keys_beside_from_replace_those_of_the_file(write: Write, cluster_data: dict[str, Any]) -> None:
    nvlink = {"intra_node": {"bandwidth_gbps": 2400}}
    write("accelerators/x.yaml", {"peak_tflops": 312, "memory_gb": 80, "links": nvlink})
    cluster_data["accelerators"]["fast"] = {"from": "../accelerators/x.yaml", "memory_gb": 40, "links": {}}
    cluster = load_cluster(write("clusters/c.yaml", cluster_data))
    assert cluster.accelerators["fast"] == Accelerator(peak_tflops=312, memory_gb=40)


def test_a_cluster_is_called_after_its_file_unless_it_has_a_name(write: Write, cluster_data: dict[str, Any]) -> None:
    assert load_cluster(write("clusters/c.yaml", cluster_data)).name == "two-types"
    del cluster_data["name"]
    assert load_cluster(write("clusters/c.yaml", cluster_data)).name == "c"


def test_a_missing_accelerator_file_is_reported_where_it_is_named(write: Write, cluster_data: dict[str, Any]) -> None:
    cluster_data["accelerators"]["fast"] = "../accelerators/none.yaml"
    cluster_data["nodes"][1]["devices"] = -1
    assert lines(write("clusters/c.yaml", cluster_data)) == [
        "clusters/c.yaml: accelerators.fast: accelerators/none.yaml: no such file",
        "clusters/c.yaml: nodes[1].devices: -1 is too small: at least 1 is accepted",
    ]


def test_mistakes_in_an_accelerator_file_are_reported_in_that_file(write: Write, cluster_data: dict[str, Any]) -> None:
    write("accelerators/x.yaml", {"peak_tflops": -1, "memory_gb": 64, "vender": "huawei"})
    cluster_data["accelerators"]["fast"] = {"from": "../accelerators/x.yaml", "memory_gb": "much"}
    assert lines(write("clusters/c.yaml", cluster_data)) == [
        "accelerators/x.yaml: unknown key 'vender'; did you mean 'vendor'?",
        "accelerators/x.yaml: peak_tflops: -1 is too small: at least 0.001 is accepted",
        "clusters/c.yaml: accelerators.fast.memory_gb: expected a number, got the text 'much'",
    ]


@pytest.mark.parametrize("entry", [{"from": 3}, {"from": None}, {"from": ""}, {"from": ["a.yaml"]}])
def test_from_must_be_a_path(write: Write, cluster_data: dict[str, Any], entry: dict[str, Any]) -> None:
    cluster_data["accelerators"]["fast"] = entry
    (line,) = lines(write("clusters/c.yaml", cluster_data))
    assert line.startswith("clusters/c.yaml: accelerators.fast.from: expected the path of an accelerator's file, got ")


@pytest.mark.parametrize(("entry", "got"), [(None, "nothing"), (3, "3"), (["a"], "a list")])
def test_an_accelerator_of_a_wrong_type_is_refused(
    write: Write, cluster_data: dict[str, Any], entry: Any, got: str
) -> None:
    cluster_data["accelerators"]["fast"] = entry
    message = f"clusters/c.yaml: accelerators.fast: expected a mapping of keys to values, got {got}"
    assert lines(write("clusters/c.yaml", cluster_data)) == [message]


def test_infinite_numbers_and_other_mistakes_are_reported_together(write: Write, cluster_data: dict[str, Any]) -> None:
    path = write("clusters/c.yaml", cluster_data)
    path.write_text(path.read_text().replace("75", "1e400").replace("1400", "-1400"))
    assert [line.split(": ", 2)[1:] for line in lines(path)] == [
        ["links.cross_cluster.bandwidth_gbps", "line 10: '1e400' is not a finite number"],
        ["links.intra_node.bandwidth_gbps", "-1400 is too small: at least 0.001 is accepted"],
    ]


def test_thousands_of_accelerators_are_refused_before_their_files_are_read(
    write: Write, cluster_data: dict[str, Any]
) -> None:
    cluster_data["accelerators"] = {f"a{index}": "none.yaml" for index in range(1001)}
    assert lines(write("clusters/c.yaml", cluster_data)) == [
        "clusters/c.yaml: accelerators: has 1001 entries: at most 1,000 are accepted"
    ]
