"""Stages files: what they mean, and one clear line for everything that is wrong with them."""

import json
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.schedule import find_schedule, get_schedule, in_flight
from poseidon.simulate import read_stages, simulate, stages_from_json

STAGE = {"forward_ms": 20, "backward_ms": 40, "send_forward_ms": 1, "send_backward_ms": 1, "all_reduce_ms": 5}


def document(**changes):
    stages = {"schema": "poseidon.stages/1", "schedule": "1f1b", "num_micro_batches": 4, "stages": [STAGE, STAGE]}
    return {key: value for key, value in {**stages, **changes}.items() if value is not None}


def mistakes_of(data):
    with pytest.raises(InputError) as raised:
        stages_from_json(data, "s.json")
    return [str(mistake) for mistake in raised.value.mistakes]


def test_the_contracts_example_is_read(tmp_path):
    path = tmp_path / "stages.json"
    path.write_text(json.dumps(document(num_chunks=1)), encoding="utf-8")
    stages = read_stages(path)
    assert stages.order == get_schedule("1f1b").order(2, 4)
    assert stages.times.all_reduce_ms.tolist() == [5, 5]
    # The last stage gets its first forward after 21 ms, waits 2 ms for its third, and then the last gradient goes back.
    assert simulate(stages.order, stages.times).iteration_time_ms == 21 + 120 + 2 + 120 + 1 + 40 + 5


def test_chunks_are_lists():
    stage = {"forward_ms": [1, 2], "backward_ms": [3, 4]}
    stages = stages_from_json(document(schedule="interleaved_1f1b", num_chunks=2, stages=[stage, stage]), "s.json")
    assert stages.times.forward_ms.tolist() == [[1, 2], [1, 2]]
    assert stages.order.num_chunks == 2


def test_operations_replace_the_schedules_order():
    operations = [["F0", "F1", "B1", "B0"]]
    stages = stages_from_json(document(num_micro_batches=2, stages=[STAGE], operations=operations), "s.json")
    assert [action.operation() for action in stages.order.stages[0]] == operations[0]


def test_operations_may_go_under_any_name():
    operations = [["F0", "I0", "W0"]]
    stages = stages_from_json(
        document(schedule="zb-h1", num_micro_batches=1, stages=[STAGE], operations=operations), "s.json"
    )
    assert stages.schedule == "zb-h1"
    assert simulate(stages.order, stages.times).iteration_time_ms == 65


def test_the_parts_of_a_split_backward_may_be_given():
    data = {
        "num_micro_batches": 1,
        "stages": [{**STAGE, "input_ms": 25, "weight_ms": 30}],
        "operations": [["F0", "I0", "W0"]],
    }
    stages = stages_from_json(document(**data), "s.json")
    assert simulate(stages.order, stages.times).iteration_time_ms == 20 + 25 + 30 + 5


def test_depths_make_an_adaptive_order():
    stages = stages_from_json(document(schedule="adaptive_1f1b", depths=[2]), "s.json")
    assert stages.order == get_schedule("eager_1f1b").order(2, 4)


def test_transfers_and_the_all_reduce_may_be_left_out():
    stages = stages_from_json(document(stages=[{"forward_ms": 1, "backward_ms": 2}]), "s.json")
    assert simulate(stages.order, stages.times).iteration_time_ms == 12


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"schema": None}, "s.json: schema: is missing; 'poseidon.stages/1' is expected"),
        (
            {"schema": "poseidon.stages/2"},
            "s.json: schema: 'poseidon.stages/2' is not known; 'poseidon.stages/1' is expected",
        ),
        ({"stages": []}, "s.json: stages: has 0 entries: at least 1 is accepted"),
        ({"schedule": "1f1c"}, "s.json: schedule: unknown schedule '1f1c'; did you mean '1f1b'?"),
        (
            {"stages": [{**STAGE, "forward_ms": -1}]},
            "s.json: stages[0].forward_ms: -1 is not a time: 0 to 1e+12 ms are accepted",
        ),
        (
            {"stages": [{**STAGE, "forward_ms": "20"}]},
            "s.json: stages[0].forward_ms: expected a number, or a list with a number for each chunk, got '20'",
        ),
        (
            {"stages": [{**STAGE, "send_forward_ms": -2}]},
            "s.json: stages[0].send_forward_ms: -2 is too small: at least 0 is accepted",
        ),
        (
            {"stages": [{**STAGE, "forward_ms": [1, 2]}]},
            "s.json: stages[0].backward_ms: has 1 chunks, but forward_ms has 2",
        ),
        (
            {"stages": [{**STAGE, "forward_ms": [1, 2], "backward_ms": [1, 2]}]},
            "s.json: stages[0].forward_ms: has 2 numbers; num_chunks asks for 1",
        ),
        (
            {"stages": [{**STAGE, "input_ms": 41}]},
            "s.json: stages[0].input_ms: is more than backward_ms; then weight_ms must be given, too",
        ),
        (
            {"num_micro_batches": 10_000_000},
            "s.json: num_micro_batches: makes 40,000,000 operations; at most 4,000,000 are accepted",
        ),
        (
            {"schedule": "interleaved_1f1b", "num_micro_batches": 1},
            "s.json: schedule: interleaved_1f1b runs micro-batches in groups of at least one per stage: "
            "num_micro_batches must be at least 2, not 1",
        ),
        ({"operations": [["F0", "B0"]]}, "s.json: operations: has 1 list(s), but each of the 2 stages needs one"),
        (
            {"num_micro_batches": 1, "stages": [STAGE], "operations": [["F0", "Q0"]]},
            "s.json: operations[0][1]: 'Q0' is not an operation: give a kind (F, B, I or W), a micro-batch and, "
            "with chunks, the chunk, as in 'F0', 'B3' or 'F0.1'",
        ),
        (
            {"num_micro_batches": 1, "stages": [STAGE], "operations": [["B0", "F0"]]},
            "s.json: operations[0][0]: stage 0 runs B0 before its forward F0",
        ),
        (
            {"num_micro_batches": 1, "stages": [STAGE], "operations": [["F0"]]},
            "s.json: operations[0]: stage 0 never runs B0 (or I0 and W0)",
        ),
    ],
)
def test_each_mistake_is_one_clear_line(changes, mistake):
    assert mistakes_of(document(**changes)) == [mistake]


def test_an_unknown_key_is_answered_with_the_nearest():
    (mistake,) = mistakes_of(document(operation=[["F0"]]))
    assert "unknown key 'operation'; did you mean 'operations'?" in mistake


def test_all_mistakes_are_reported_together():
    stage = {**STAGE, "forward_ms": "x", "backward_ms": -1}
    mistakes = mistakes_of(document(schema="x", stages=[stage], num_micro_batches=0))
    fields = [mistake.split(": ")[1] for mistake in mistakes]
    assert fields == ["schema", "num_micro_batches", "stages[0].forward_ms", "stages[0].backward_ms"]


def test_a_wholly_wrong_order_lists_its_first_mistakes():
    mistakes = mistakes_of(document(num_micro_batches=100, stages=[STAGE], operations=[[]]))
    assert len(mistakes) == 20


def test_schedules_with_split_backwards_are_read_by_any_spelling():
    for name in ("zb_h1", "ZB-H1"):
        stages = stages_from_json(document(schedule=name), "s.json")
        assert stages.order == find_schedule("zb_h1").order(2, 4)
    chunks = {"forward_ms": [1, 1], "backward_ms": [2, 2]}
    stages = stages_from_json(document(schedule="ZBV", num_chunks=2, stages=[chunks, chunks]), "s.json")
    assert stages.order.placement == "v"


def test_operations_may_run_their_chunks_in_a_v():
    chunks = {"forward_ms": [1, 1], "backward_ms": [2, 2]}
    operations = [["F0.0", "F0.1", "B0.1", "B0.0"], ["F0.0", "F0.1", "B0.1", "B0.0"]]
    data = {"num_micro_batches": 1, "num_chunks": 2, "stages": [chunks, chunks], "operations": operations}
    stages = stages_from_json(document(**data, placement="v"), "s.json")
    assert stages.order.placement == "v"
    # Stage 1 turns round without a pause; in a loop its second chunk would wait for stage 0's.
    timeline = simulate(stages.order, stages.times)
    assert timeline.iteration_time_ms == 12
    assert timeline.start_ms.tolist() == [0, 3, 4, 10, 1, 2, 6, 8]
    loop = stages_from_json(document(**data), "s.json")
    assert simulate(loop.order, loop.times).start_ms.tolist() == [0, 2, 6, 10, 1, 3, 4, 8]


def test_sizes_give_the_peaks_of_the_replayed_order():
    sized = [{**STAGE, "activation_bytes": 10}, {**STAGE, "activation_bytes": 10}]
    assert stages_from_json(document(stages=sized), "s.json").peak_activation_bytes == (20, 10)
    assert stages_from_json(document(), "s.json").peak_activation_bytes == ()


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        (
            {"stages": [{**STAGE, "activation_bytes": 1}, STAGE]},
            "s.json: stages: have activation_bytes in part: give it for every stage or for none",
        ),
        (
            {"stages": [{**STAGE, "weight_input_bytes": 1}]},
            "s.json: stages[0].weight_input_bytes: needs activation_bytes, too",
        ),
        (
            {"stages": [{**STAGE, "activation_bytes": -1}]},
            "s.json: stages[0].activation_bytes: -1 is not a size: 0 to 1e+18 bytes are accepted",
        ),
        ({"placement": "v"}, "s.json: placement: 1f1b runs its chunks in a loop: leave placement out"),
        (
            {"transfers": "block"},
            "s.json: transfers: 'block' is not known; did you mean 'blocking'? accepted: overlapped, blocking",
        ),
        (
            {"schedule": "zbv"},
            "s.json: schedule: zbv runs each stage as two chunks in a V: num_chunks must be 2, not 1",
        ),
    ],
)
def test_mistakes_of_split_schedules_transfers_and_sizes(changes, mistake):
    assert mistakes_of(document(**changes)) == [mistake]


def test_the_example_of_seq1f1b_follows_its_rule():
    """Arxiv 2406.03488: segments of micro-batches in 1F1B, N - s - 2 + S first, backwards from the last segment."""
    path = Path(__file__).parents[2] / "configs" / "stages" / "seq1f1b.json"
    stages = read_stages(path)
    num_stages, num_segments, total = 4, 2, 8
    for stage, actions in enumerate(stages.order.stages):
        forwards = [f"F{number}" for number in range(total)]
        backwards = [f"B{number + num_segments - 1 - 2 * (number % num_segments)}" for number in range(total)]
        warmup = num_stages - stage - 2 + num_segments
        pairs = [name for pair in zip(forwards[warmup:], backwards, strict=False) for name in pair]
        expected = [*forwards[:warmup], *pairs, *backwards[total - warmup :]]
        assert [action.operation() for action in actions] == expected
    # Half of what 1F1B holds of whole micro-batches: 5 segments are 2.5 of 4.
    assert in_flight(stages.order)[0] / num_segments < 0.65 * in_flight(get_schedule("1f1b").order(4, 4))[0]
