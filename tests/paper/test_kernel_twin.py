"""Kernel, twin and replay on random configurations of random deployments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.paper.deployments import deployments
from poseidon.paper.exhibits.accuracy_study import EXHIBIT, difference
from poseidon.paper.request import Request
from poseidon.paper.studies.kernel_twin import SCHEDULES, STUDY, rows
from tests.paper.tiny import check_tables, drawn, stored, tiny_request

Write = Callable[..., Path]
NODES = [{"accelerator": "fast", "count": 2, "devices": 2}, {"accelerator": "slow", "count": 1, "devices": 2}]


@pytest.fixture
def request_of_three_nodes(write_experiment: Write) -> Request:
    request = tiny_request(write_experiment)
    write_experiment("accuracy-study.yaml", cluster={"nodes": NODES})
    return request


def test_deployments_are_all_mixed_parts_of_the_cluster_once_each(request_of_three_nodes: Request) -> None:
    cluster = request_of_three_nodes.experiment("accuracy-study").cluster
    names = [part.name for part in deployments(cluster, seed=1)]
    assert sorted(names) == ["1 fast + 1 slow", "2 fast + 1 slow"]
    assert names == [part.name for part in deployments(cluster, seed=1)]


def test_all_three_agree_on_every_configuration(request_of_three_nodes: Request) -> None:
    measured = list(rows(request_of_three_nodes, num_deployments=2, num_configurations=20))
    assert len(measured) == 2 * 20 * len(SCHEDULES)
    assert {row["schedule"] for row in measured} == set(SCHEDULES)
    for row in measured:
        assert row["twin_ms"] == row["kernel_ms"]
        assert row["replay_ms"] == pytest.approx(row["kernel_ms"], rel=1e-12)
        assert row["dp"] * row["tp"] * row["pp"] == row["num_devices"]
    assert len({row["kernel_ms"] for row in measured}) > len(measured) / 3


def test_too_few_deployments_are_refused(request_of_three_nodes: Request) -> None:
    with pytest.raises(InputError, match="only 2 parts of the cluster have room"):
        list(rows(request_of_three_nodes, num_deployments=3, num_configurations=1))


def test_the_exhibit_gives_the_largest_difference(request_of_three_nodes: Request) -> None:
    table = stored(STUDY, list(rows(replace(request_of_three_nodes), num_deployments=2, num_configurations=5)))
    table[3]["replay_ms"] = table[3]["kernel_ms"] * 1.001
    assert difference(table, "replay_ms") == pytest.approx(0.001)
    tables = {STUDY.name: table}
    text = EXHIBIT.found(tables)
    assert f"{len(table)} configurations on 2 deployments" in text
    assert "kernel and twin differ by nothing (bit for bit)" in text
    assert "independent replay by 0.001 of the time" in text
    check_tables(EXHIBIT, tables)
    assert drawn(EXHIBIT, tables).axes[0].get_xscale() == "log"
    assert "docs/accuracy.md" in EXHIBIT.remarks(tables)[0]
