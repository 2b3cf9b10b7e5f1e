from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.sweep.plot import plot_plan
from poseidon.sweep.sweep import load_sweep

LIST = {"training.global_batch_size": [16, 32]}


def refusal(path: Path) -> list[str]:
    with pytest.raises(InputError) as raised:
        plot_plan(load_sweep(path))
    return [f"{mistake.field}: {mistake.message}" for mistake in raised.value.mistakes]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"axis": LIST}, "unknown key 'axis'; did you mean 'axes'?"),
        ({"axes": {}}, "axes: has 0 entries: at least 1 is accepted"),
        ({"axes": {"a": []}}, "axes.a.values: has 0 entries: at least 1 is accepted"),
        ({"axes": {"a": {"value": [1]}}}, "axes.a: unknown key 'value'; did you mean 'values'?"),
        ({"axes": {"a": {"values": [1], "points": [{"label": 1}]}}}, "axes.a: needs either values, or points"),
        (
            {"axes": {"a": {"field": "b", "points": [{"label": 1}]}}},
            "axes.a: points have labels and fields of their own",
        ),
        ({"axes": {"a": {"values": [1, 2], "labels": ["x"]}}}, "axes.a.labels: has 1 entries for 2 values"),
        ({"axes": {"a": [1, 1]}}, "axes.a: two points are called '1'; give them labels"),
        ({"axes": {"search..policy": ["exact"]}}, "'search..policy' is no field path"),
        ({"axes": {"a": {"points": [{"set": {"search.policy": "exact"}}]}}}, "axes.a.points[0].label: is missing"),
        ({"axes": {**LIST, "b": {"field": "training.global_batch_size", "values": [8]}}}, "also changed by the axis"),
        ({"plot": {"x": "bach"}}, "plot.x: 'bach' is no axis; the axes are 'batch'"),
        ({"plot": {"y": ["tokens_per_secnd"]}}, "is no numeric column; did you mean 'tokens_per_second'?"),
        ({"plot": {"y": ["status"]}}, "plot.y[0]: 'status' is no numeric column"),
        ({"plot": {"log": ["mfu"]}}, "plot.log[0]: 'mfu' is neither the x nor one of the y"),
        ({"experiment": 3}, "experiment: expected text, got 3"),
    ],
)
def test_what_a_sweep_file_may_not_say(write_sweep: Callable[..., Path], keys: dict[str, Any], expected: str) -> None:
    mistakes = refusal(write_sweep(**keys))
    assert any(expected in mistake for mistake in mistakes), mistakes


def test_labels_are_values_names_of_files_or_given(write_sweep: Callable[..., Path]) -> None:
    axes = {
        "training.global_batch_size": [16, 32.0],
        "training.schedules": ["1f1b", ["1f1b", "gpipe"]],
        "search.allow_idle": [True, False],
        "cluster": ["../clusters/a-2.yaml", "b/c.yaml"],
        "x": {"field": "search.tp", "values": ["uniform", "per-type"], "labels": [1, 2.5]},
    }
    loaded = load_sweep(write_sweep(axes=axes)).axes
    assert [[point.label for point in axis.points] for axis in loaded] == [
        ["16", "32"],
        ["1f1b", "1f1b+gpipe"],
        ["true", "false"],
        ["a-2", "c"],
        ["1", "2.5"],
    ]
    assert [axis.is_numeric for axis in loaded] == [True, False, False, False, True]


def test_people_see_the_last_part_of_a_field_where_it_says_enough(write_sweep: Callable[..., Path]) -> None:
    links = [f"cluster.links.{name}.bandwidth_gbps" for name in ("intra_node", "inter_node")]
    axes = {name: [1] for name in [*links, "search.policy", "size of it"]}
    loaded = load_sweep(write_sweep(axes=axes)).axes
    assert [axis.title for axis in loaded] == [*links, "policy", "size of it"]
