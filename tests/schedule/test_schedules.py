"""What every schedule promises, and the rule that tells each from the others."""

import itertools

import pytest

from poseidon.schedule import SCHEDULES, check_order, get_schedule, in_flight, order_to_operations
from poseidon.schedule.interleaved_one_f_one_b import microbatch_group_size

ONE_CHUNK = ("1f1b", "eager_1f1b", "gpipe")
SHAPES = list(itertools.product(range(1, 7), range(1, 14)))
CHUNKED_SHAPES = [(n, n * k, v) for n in range(1, 6) for k in range(1, 4) for v in range(1, 5)]


def every_shape(name):
    if name == "interleaved_1f1b":
        return [(shape, ()) for shape in CHUNKED_SHAPES]
    depths = {"adaptive_1f1b": lambda n: tuple(1 + link % 3 for link in range(n - 1))}.get(name, lambda n: ())
    return [((n, m, 1), depths(n)) for n, m in SHAPES]


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_can_be_run(name):
    for shape, depths in every_shape(name):
        assert check_order(get_schedule(name).order(*shape, depths=depths)) == ()


@pytest.mark.parametrize("name", SCHEDULES)
def test_warmup_and_in_flight_counts_are_those_of_the_replayed_order(name):
    schedule = get_schedule(name)
    for shape, depths in every_shape(name):
        order = schedule.order(*shape, depths=depths)
        replayed = in_flight(order)
        for stage in range(shape[0]):
            assert schedule.warmup_forwards(stage, *shape, depths=depths) == order.warmup_forwards(stage)
            assert schedule.in_flight(stage, *shape, depths=depths) == replayed[stage]


def test_1f1b_starts_with_as_many_forwards_as_stages_are_left():
    assert [get_schedule("1f1b").warmup_forwards(stage, 4, 8) for stage in range(4)] == [4, 3, 2, 1]
    assert [get_schedule("1f1b").warmup_forwards(stage, 4, 2) for stage in range(4)] == [2, 2, 2, 1]


def test_eager_1f1b_doubles_the_warmup():
    assert [get_schedule("eager_1f1b").warmup_forwards(stage, 4, 20) for stage in range(4)] == [7, 5, 3, 1]
    assert [get_schedule("eager_1f1b").in_flight(stage, 4, 4) for stage in range(4)] == [4, 4, 3, 1]


def test_gpipe_keeps_every_micro_batch_in_flight():
    assert [get_schedule("gpipe").in_flight(stage, 3, 7) for stage in range(3)] == [7, 7, 7]


def test_interleaved_1f1b_runs_one_more_forward_than_megatrons_warmup():
    # Megatron-LM: min(2 (N - s - 1) + (V - 1) N, M V) forwards, then pairs of forward and backward.
    assert [get_schedule("interleaved_1f1b").warmup_forwards(stage, 4, 8, 2) for stage in range(4)] == [11, 9, 7, 5]
    assert get_schedule("interleaved_1f1b").in_flight(0, 4, 8, 2) == 5.5
    assert get_schedule("interleaved_1f1b").warmup_forwards(0, 4, 4, 2) == 8


@pytest.mark.parametrize("name", ONE_CHUNK)
def test_micro_batches_go_through_in_turn(name):
    for actions in get_schedule(name).order(3, 7).stages:
        for kind in "FB":
            assert [action.microbatch for action in actions if action.kind == kind] == list(range(7))


def test_one_stage_without_a_pipeline_alternates():
    for name in ("1f1b", "eager_1f1b"):
        assert order_to_operations(get_schedule(name).order(1, 2)) == [["F0", "B0", "F1", "B1"]]


@pytest.mark.parametrize("name", ONE_CHUNK)
def test_schedules_of_one_chunk_refuse_several(name):
    assert (
        get_schedule(name).check_shape(2, 4, 2) == f"{name} runs each stage as one chunk: num_chunks must be 1, not 2"
    )
    with pytest.raises(ValueError, match="num_chunks must be 1"):
        get_schedule(name).order(2, 4, 2)


def test_interleaved_1f1b_refuses_fewer_micro_batches_than_stages():
    reason = get_schedule("interleaved_1f1b").check_shape(4, 3, 2)
    assert reason is not None
    assert reason.endswith("num_micro_batches must be at least 4, not 3")


@pytest.mark.parametrize(
    ("stages", "micro_batches", "group"), [(4, 8, 4), (4, 10, 5), (4, 6, 6), (6, 64, 8), (2, 5, 3)]
)
def test_interleaved_1f1b_takes_the_smallest_group_that_leaves_no_short_one(stages, micro_batches, group):
    """(4, 10) and (4, 6) as PyTorch's flexible groups; (2, 5): groups of 3 and 2."""
    assert microbatch_group_size(stages, micro_batches) == group
    first_chunk = get_schedule("interleaved_1f1b").order(stages, micro_batches, 2).stages[0][:group]
    assert [(action.microbatch, action.chunk) for action in first_chunk] == [(m, 0) for m in range(group)]


def test_interleaved_1f1b_runs_with_any_number_of_micro_batches_from_n_up():
    for stages, micro_batches, chunks in itertools.product(range(1, 6), range(1, 14), range(1, 4)):
        if micro_batches >= stages:
            assert check_order(get_schedule("interleaved_1f1b").order(stages, micro_batches, chunks)) == ()


@pytest.mark.parametrize("name", [*ONE_CHUNK, "interleaved_1f1b"])
def test_depths_belong_to_the_adaptive_schedule(name):
    assert get_schedule(name).check_shape(2, 2, depths=(1,)) == f"{name} takes no depths: they belong to adaptive_1f1b"


@pytest.mark.parametrize("name", SCHEDULES)
def test_sizes_below_one_are_refused(name):
    for shape, field in (((0, 1, 1), "num_stages"), ((1, 0, 1), "num_micro_batches"), ((1, 1, 0), "num_chunks")):
        assert get_schedule(name).check_shape(*shape) == f"{field} must be at least 1, not 0"


def test_accepted_shapes_have_no_reason():
    assert get_schedule("interleaved_1f1b").check_shape(4, 8, 2) is None
    assert get_schedule("1f1b").check_shape(8, 1) is None


def test_an_unknown_schedule_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="unknown schedule '1flb'; did you mean '1f1b'"):
        get_schedule("1flb")


def test_a_far_fetched_schedule_is_answered_with_all():
    with pytest.raises(ValueError, match="known schedules: 1f1b, eager_1f1b, gpipe, interleaved_1f1b, adaptive_1f1b"):
        get_schedule("zzz")


def test_every_schedule_has_its_name_and_a_line_for_people():
    for name, schedule in SCHEDULES.items():
        assert schedule.name == name
        assert schedule.summary
        assert "\n" not in schedule.summary
