import json
import math
from copy import deepcopy

import pytest

from poseidon.cost.problem import Pool
from poseidon.cost.problem_file import problem_from_json, problem_to_json, read_problems
from poseidon.errors import InputError

KIND = {
    "name": "A/tp2",
    "stages": 2,
    "stages_per_node": 1,
    "forward_ms": 8.0,
    "backward_ms": 16.0,
    "all_reduce_ms": 6.0,
    "first": {"forward_ms": 0.1, "backward_ms": 0.2, "all_reduce_ms": 0.0},
    "last": {"forward_ms": 4.0, "backward_ms": 8.0, "all_reduce_ms": 0.0},
    "max_layers": [3, 3],
}
PLAIN = {
    "schema": "poseidon.problem/1",
    "name": "dp4 tp2",
    "schedule": "1f1b",
    "num_chunks": 1,
    "num_micro_batches": 8,
    "num_layers": 4,
    "assignment": "node",
    "kinds": [KIND],
    "transfer_ms": {"intra_node": [[0.1]], "inter_node": [[1.0]]},
}
COST = {"forward_ms": 1.0, "backward_ms": 2.0, "all_reduce_ms": 0.5}


def changed(kind=None, **fields):
    data = deepcopy(PLAIN) | fields
    data["kinds"][0] |= kind or {}
    return data


def mistakes_of(data):
    with pytest.raises(InputError) as raised:
        problem_from_json(data, "p.jsonl:3")
    return str(raised.value).splitlines()


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        changed(
            layer_types=["dense", "moe", "moe", "moe"],
            kinds=[
                {key: value for key, value in KIND.items() if key not in COST}
                | {"layers": {"dense": COST, "moe": COST}, "max_layers": [[1, 2, 3, 4], 2]}
            ],
        ),
        changed(pools={"A": {"devices": 8, "devices_per_node": 8}}, num_stages=3, kind={"pool": "A", "devices": 4})
        | {"kinds": [KIND | {"pool": "A", "devices": 4, "max_layers": [3, 3, 3]}]},
        changed(allow_idle=True, num_stages=1),
        changed(transfer_ms={"intra_node": [[0.1]], "inter_node": [[None]]}),
        changed(schedule="adaptive_1f1b", most_depth=3, kind={"max_layers": [3, 2, 1, 3]}),
        changed(schedule="interleaved_1f1b", num_chunks=2),
    ],
    ids=["plain", "mixed layers", "pool", "idle", "cannot talk", "depths", "chunks"],
)
def test_a_problem_comes_back_as_it_was_written(data):
    assert problem_to_json(problem_from_json(data, "line")) == data


def test_fields_that_are_left_out_have_defaults():
    kind = {key: KIND[key] for key in ("name", "stages", "forward_ms", "backward_ms", "max_layers")}
    left_out = {key: value for key, value in PLAIN.items() if key not in ("num_chunks", "assignment")}
    problem = problem_from_json(left_out | {"kinds": [kind]}, "line")
    assert (problem.num_chunks, problem.assignment, problem.num_stages, problem.most_depth) == (1, "node", 2, 1)
    assert problem.kinds[0].stages_per_node == 1
    assert problem.kinds[0].last.forward_ms == problem.kinds[0].layers[0].all_reduce_ms == 0.0


def test_null_means_that_two_kinds_cannot_talk():
    problem = problem_from_json(changed(transfer_ms={"intra_node": [[0.1]], "inter_node": [[None]]}), "line")
    assert math.isinf(problem.inter_node_ms[0][0])


def test_one_cost_holds_for_all_layer_types():
    problem = problem_from_json(changed(layer_types=["dense", "moe", "moe", "dense"]), "line")
    assert problem.layer_types == (0, 1, 1, 0)
    assert problem.kinds[0].layers[0] == problem.kinds[0].layers[1]


def test_pools_keep_their_sizes():
    pools = {"A": {"devices": 16, "devices_per_node": 8}}
    data = changed(pools=pools, num_stages=2, kind={"pool": "A", "devices": 8})
    assert problem_from_json(data, "line").pools == (Pool("A", 16, 8),)


@pytest.mark.parametrize(
    ("data", "mistake"),
    [
        (changed(numlayers=3), "unknown key 'numlayers'; did you mean 'num_layers'?"),
        (
            changed(schema="poseidon.problem/9"),
            "schema: 'poseidon.problem/9' is not known; 'poseidon.problem/1' is expected",
        ),
        (changed(schedule="1f1"), "schedule: unknown schedule '1f1'; did you mean '1f1b'?"),
        (changed(assignment="rack"), "assignment: 'rack' is not known; accepted: node, stage"),
        (
            changed(most_depth=2, kind={"max_layers": [3, 3, 3]}),
            "most_depth: 1f1b has no depths to choose: only 1 is accepted",
        ),
        (changed(num_stages=3, kind={"max_layers": [3, 3, 3]}), "num_stages: is 3, but the kinds' stages add up to 2"),
        (
            changed(num_micro_batches=9_000_000),
            "num_micro_batches: makes 36,000,000 operations; at most 10,000,000 are accepted",
        ),
        (changed(layer_types=["dense"]), "layer_types: has 1 entries; one for each of the 4 layers is needed"),
        (changed(kinds=[KIND | {"stages": 0}]), "kinds: no kind fills a stage; at least one stage is needed"),
        (
            changed(kind={"max_layers": [3]}),
            "kinds[0].max_layers: has 1 entries; one for each of the 2 places is needed",
        ),
        (
            changed(kind={"max_layers": [3, [1, 2]]}),
            "kinds[0].max_layers[1]: has 2 entries; one for each of the 4 first layers is needed",
        ),
        (changed(kind={"max_layers": [3, -1]}), "kinds[0].max_layers[1][0]: -1 is too small: at least 0 is accepted"),
        (
            changed(kind={"forward_ms": None}),
            "kinds[0].forward_ms: is missing (or give layers: the times of a layer of each type)",
        ),
        (changed(kind={"layers": {"dense": COST}}), "kinds[0].layers: has no times for layer type layer"),
        (changed(kind={"pool": "B"}), "kinds[0].pool: 'B' is not declared in pools"),
        (
            changed(transfer_ms={"intra_node": [[0.1]], "inter_node": [[1.0, 2.0]]}),
            "transfer_ms.inter_node: must be 1 rows of 1 numbers, one for each pair of kinds",
        ),
    ],
)
def test_each_mistake_is_one_clear_line(data, mistake):
    assert mistakes_of(data) == [f"p.jsonl:3: {mistake}"]


@pytest.mark.parametrize("data", [None, [], 3, "text"])
def test_what_is_no_mapping_is_refused(data):
    (mistake,) = mistakes_of(data)
    assert mistake.startswith("p.jsonl:3: is not a problem: expected a mapping of keys to values, got ")


def test_mistakes_are_reported_together():
    data = changed(kind={"stages": -1, "backward_ms": None}, colour="red") | {"num_layers": "many"}
    lines = mistakes_of(data)
    for field in ("unknown key 'colour'", "num_layers", "kinds[0].stages", "kinds[0].backward_ms"):
        assert sum(line.startswith(f"p.jsonl:3: {field}") for line in lines) == 1
    assert len(lines) == 4


def test_a_file_has_one_problem_a_line_and_errors_name_the_line(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text(f"{json.dumps(PLAIN)}\n\n{json.dumps(changed(name='second'))}\nnot json\n", encoding="utf-8")
    problems = read_problems(path)
    assert [next(problems).name, next(problems).name] == ["dp4 tp2", "second"]
    with pytest.raises(InputError, match=r"problems\.jsonl:4: is not valid JSON"):
        next(problems)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        next(read_problems(tmp_path / "none.jsonl"))
