"""Replanning random clusters after random losses, against a twin that works with sets alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost import alike_nodes
from poseidon.errors import InputError
from poseidon.inputs import Experiment, experiment_from_resolved
from poseidon.output.plan_json import plan_to_json
from poseidon.plan import Plan, Verdict, check_plan
from poseidon.plan.check_optimum import Effort
from poseidon.planner import find_plan
from poseidon.replan.added import additions
from poseidon.replan.lost import lost_devices
from poseidon.replan.new_cluster import Wishes, new_experiment, remaining_nodes
from poseidon.replan.replan import Refused, Replanned, replan
from poseidon.replan.to_json import moves_to_json
from tests.conftest import EXAMPLE
from tests.replan.twin import Atom, Device, held_atoms, listed_atoms, most_kept, survivors_atoms
from tests.search.strategies import examples

EFFORT = Effort(everything_steps=0, everything_operations=0, steps=0, operations=0)


@st.composite
def experiments(draw: st.DrawFn) -> Experiment:
    """The example on other nodes, with other settings."""
    sizes = st.sampled_from((1, 2, 4))
    nodes = [
        {"accelerator": name, "count": draw(st.integers(1, 3)), "devices": draw(sizes)}
        for name in draw(st.sampled_from((("fast",), ("fast", "slow"), ("slow", "fast", "slow"))))
    ]
    schedule = draw(st.sampled_from(("1f1b", "interleaved_1f1b")))
    training = {
        "distributed_optimizer": draw(st.booleans()),
        "schedules": [schedule],
        "global_batch_size": 48,
        "micro_batch_sizes": [1],
    }
    search = {
        "tp": draw(st.sampled_from(("uniform", "per-type"))),
        "assignment": draw(st.sampled_from(("node", "stage"))),
        "allow_idle": schedule == "1f1b" and draw(st.sampled_from((True, True, False))),
        "fixed_dp": draw(st.sampled_from((None, 1, 2))),
    }
    data: dict[str, Any] = {
        "name": "random",
        "model": EXAMPLE["model"] | {"tied_embeddings": draw(st.booleans())},
        "cluster": EXAMPLE["cluster"] | {"nodes": nodes},
        "training": EXAMPLE["training"] | training,
        "search": search,
    }
    return experiment_from_resolved(data)


@st.composite
def changes(draw: st.DrawFn, experiment: Experiment) -> tuple[list[str], list[str]]:
    """What is lost and what is added."""
    count = sum(group.count for group in experiment.cluster.nodes)
    sizes = [group.devices for group in experiment.cluster.nodes for _ in range(group.count)]
    added = draw(st.sampled_from(([], ["fast:2"], ["2xslow:4"])))
    least = 0 if added else 1
    lost = draw(st.lists(st.integers(0, count - 1), unique=True, min_size=least, max_size=2))
    words = []
    for node in lost:
        some = draw(st.sampled_from((0, 1, 2 ** (sizes[node] - 1))))
        devices = [device for device in range(sizes[node]) if some >> device & 1]
        words.append(f"node{node}/{'+'.join(map(str, devices))}" if devices else f"node{node}")
    return words, list(added)


def replanned(old: Plan, lost: list[str], added: list[str], **wishes: Any) -> Any:
    cluster = old.experiment.cluster
    addition = additions(added, [], cluster)
    nodes = remaining_nodes(old.experiment, lost_devices(lost, cluster), addition)
    return replan(old, nodes, addition, Wishes(**wishes))


def as_file(plan: Plan) -> dict[str, Any]:
    return dict(json.loads(json.dumps(plan_to_json(plan))))


@given(data=st.data(), experiment=experiments())
@examples(50)
def test_every_device_gets_all_that_it_needs_from_where_it_is(data: st.DataObject, experiment: Experiment) -> None:
    try:
        old = find_plan(experiment)
    except InputError:  # nodes that no stage of equal size fits
        return
    if not isinstance(old, Plan):
        return
    lost, added = data.draw(changes(experiment))
    try:
        answer = replanned(old, lost, added)
    except InputError:  # no device would be left
        return
    if isinstance(answer, Refused):
        return
    assert isinstance(answer, Replanned)
    moves = json.loads(json.dumps(moves_to_json(answer)))
    wanted = held_atoms(as_file(answer.new), moves["pieces"])
    has = survivors_atoms(held_atoms(as_file(old), moves["pieces"]), moves)
    check_devices(moves, wanted, has)
    check_layers(moves, wanted)
    check_totals(answer, moves, wanted, has)
    assert [f for f in check_plan(answer.new, EFFORT) if f.verdict is Verdict.WRONG] == []


def check_devices(moves: dict[str, Any], wanted: dict[Device, set[Atom]], has: dict[Device, set[Atom]]) -> None:
    """Kept is all that is there already, received is all that some survivor has, loaded is the rest."""
    assert [(entry["node"], entry["device"]) for entry in moves["devices"]] == list(wanted)
    somewhere = set().union(*has.values()) if has else set()
    for entry in moves["devices"]:
        device = (entry["node"], entry["device"])
        needed, mine = wanted[device], has.get(device, set())
        assert listed_atoms(entry["keep"]) == needed & mine
        assert listed_atoms(entry["receive"]) == (needed - mine) & somewhere
        assert listed_atoms(entry["load"]) == needed - mine - somewhere
        for piece in entry["receive"]:
            source = (piece["from"]["node"], piece["from"]["device"])
            assert source != device
            assert listed_atoms([piece]) <= has[source]


def check_layers(moves: dict[str, Any], wanted: dict[Device, set[Atom]]) -> None:
    """Every part is in the table of layers once, and the table's bytes are those of the devices."""
    parts = [part for row in moves["layers"] for part in row["parts"]]
    assert sorted(parts) == sorted({atom[0] for atoms in wanted.values() for atom in atoms})
    for kind in ("kept_bytes", "received_bytes", "loaded_bytes"):
        assert sum(row[kind] for row in moves["layers"]) == pytest.approx(moves[kind], abs=len(moves["layers"]) + 1)


def check_totals(
    answer: Replanned, moves: dict[str, Any], wanted: dict[Device, set[Atom]], has: dict[Device, set[Atom]]
) -> None:
    """What the devices hold is what the plan's memory says, and no other hand-out of alike devices keeps more."""
    stage_bytes = [
        (stage.memory.weights_bytes + stage.memory.optimizer_bytes) * stage.num_devices
        for stage in answer.new.pipeline.stages
    ]
    total = answer.kept_bytes + answer.received_bytes + answer.loaded_bytes
    assert math.isclose(total, sum(stage_bytes), rel_tol=1e-9)
    sizes: dict[tuple[Device, Atom], float] = {}
    for entry in moves["devices"]:
        for piece in (*entry["keep"], *entry["receive"], *entry["load"]):
            first, end = piece["range"]
            for number in range(first, end):
                key = ((entry["node"], entry["device"]), (piece["part"], piece["state"], number))
                sizes[key] = piece["bytes"] / (end - first)
    pools = [(list(pool.nodes), pool.group.devices) for pool in alike_nodes(answer.new.experiment.cluster)]
    most = most_kept(wanted, has, pools, lambda place, atom: sizes[place, atom])
    assert moves["kept_bytes"] == pytest.approx(most, rel=1e-6, abs=1000)


@given(experiment=experiments())
@examples(15)
def test_nothing_moves_where_nothing_is_lost(experiment: Experiment) -> None:
    try:
        old = find_plan(experiment)
    except InputError:
        return
    if not isinstance(old, Plan):
        return
    answer = replanned(old, [], [])
    assert isinstance(answer, Replanned)
    assert answer.new.pipeline == old.pipeline
    assert (answer.received_bytes, answer.loaded_bytes, answer.transfers_ms) == (0, 0, 0)


@given(data=st.data(), experiment=experiments())
@examples(15)
def test_the_new_plan_takes_as_long_as_that_of_a_fresh_search(data: st.DataObject, experiment: Experiment) -> None:
    try:
        old = find_plan(experiment)
        if not isinstance(old, Plan):
            return
        lost, added = data.draw(changes(experiment))
        answer = replanned(old, lost, added)
    except InputError:
        return
    addition = additions(added, [], experiment.cluster)
    nodes = remaining_nodes(experiment, lost_devices(lost, experiment.cluster), addition)
    if isinstance(answer, Refused):
        return
    fresh = find_plan(new_experiment(experiment, nodes, addition, Wishes()))
    assert isinstance(fresh, Plan)
    assert math.isclose(answer.new.pipeline.iteration_time_ms, fresh.pipeline.iteration_time_ms, rel_tol=1e-9)
