from __future__ import annotations

from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.sweep.field_change import UnknownFieldError, parse_path, set_field


def data() -> dict[str, Any]:
    return {
        "cluster": {
            "accelerators": {"A.1": {"memory_gb": 1.0}},
            "nodes": [{"count": 1}, {"count": 2}],
            "links": {"inter_node": {"bandwidth_gbps": 100.0}},
        },
        "training": {"schedules": ["1f1b"], "global_batch_size": 8},
        "search": {"time_limit_s": None},
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    parts, fields = parse_path(path), data()
    assert parts is not None
    set_field(fields, parts, value, "sweep.yaml", "axes.x")
    return fields


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("profile", ("profile",)),
        ("search.policy", ("search", "policy")),
        ("cluster.nodes.0.count", ("cluster", "nodes", "0", "count")),
        ("cluster.nodes[0].count", ("cluster", "nodes", 0, "count")),
        ("cluster.accelerators['A.1'].memory_gb", ("cluster", "accelerators", "A.1", "memory_gb")),
        ('cluster.accelerators["A 1"]', ("cluster", "accelerators", "A 1")),
    ],
)
def test_a_path_is_read(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", ".", ".a", "a.", "a..b", "a[", "a[]", "a[b]", "a]b", "a[0]b"])
def test_what_is_no_path(text: str) -> None:
    assert parse_path(text) is None


def test_one_field_changes_and_all_others_stay() -> None:
    expected = data()
    expected["cluster"]["nodes"][1]["count"] = 5
    assert changed("cluster.nodes.1.count", 5) == changed("cluster.nodes[1].count", 5) == expected


def test_a_single_value_for_a_list_becomes_a_list() -> None:
    assert changed("training.schedules", "gpipe")["training"]["schedules"] == ["gpipe"]
    assert changed("training.schedules", ["1f1b", "gpipe"])["training"]["schedules"] == ["1f1b", "gpipe"]


def test_entries_of_lists_and_accelerators_may_be_added() -> None:
    assert changed("cluster.nodes.2", {"count": 9})["cluster"]["nodes"][2] == {"count": 9}
    assert changed("cluster.accelerators.new", "new.yaml")["cluster"]["accelerators"]["new"] == "new.yaml"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("serch.time_limit_s", "unknown field 'serch' of the experiment; did you mean 'search'?"),
        ("search.time_limit", "unknown field 'time_limit' of search; did you mean 'time_limit_s'?"),
        ("cluster.links.inter_nod.bandwidth_gbps", "'inter_nod' of cluster.links; did you mean 'inter_node'?"),
        ("cluster.zzz", "the fields are accelerators, nodes, links"),
        ("cluster.nodes.3", "cluster.nodes has no entry 3; it has 2, counted from 0"),
        ("cluster.nodes.2.count", "cluster.nodes has no entry 2; it has 2, counted from 0"),
        ("cluster.nodes.first", "'first' is no index; cluster.nodes is a list of 2 entries"),
        ("cluster.accelerators.new.memory_gb", "unknown field 'new'"),
        ("training.global_batch_size.x", "training.global_batch_size is a single value: it has no fields"),
        ("search.time_limit_s.x", "search.time_limit_s is not set: it has no fields"),
    ],
)
def test_a_path_that_is_no_field_is_refused_with_the_nearest(path: str, message: str) -> None:
    with pytest.raises(UnknownFieldError) as refusal:
        changed(path, 1)
    [mistake] = refusal.value.mistakes
    assert isinstance(refusal.value, InputError)
    assert (mistake.file, mistake.field) == ("sweep.yaml", "axes.x")
    assert message in mistake.message
