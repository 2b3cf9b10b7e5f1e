import pytest

from poseidon.schedule import get_schedule, hiding_depth

adaptive = get_schedule("adaptive_1f1b")


@pytest.mark.parametrize(("num_stages", "num_micro_batches"), [(1, 3), (2, 1), (4, 9), (6, 5)])
def test_depth_one_is_1f1b_and_depth_two_is_eager(num_stages, num_micro_batches):
    for depth, name in ((1, "1f1b"), (2, "eager_1f1b")):
        order = adaptive.order(num_stages, num_micro_batches, depths=(depth,) * (num_stages - 1))
        assert order == get_schedule(name).order(num_stages, num_micro_batches)


def test_a_deep_link_lengthens_the_warmup_of_the_stages_before_it_alone():
    depths = (1, 3, 1)
    assert [adaptive.warmup_forwards(stage, 4, 20, depths=depths) for stage in range(4)] == [6, 5, 2, 1]


def test_the_warmup_never_exceeds_the_micro_batches():
    assert [adaptive.warmup_forwards(stage, 3, 4, depths=(9, 9)) for stage in range(3)] == [4, 4, 1]


def test_every_link_needs_a_depth():
    assert adaptive.check_shape(4, 8) == "adaptive_1f1b needs one depth for each of the 3 links between stages, not 0"
    with pytest.raises(ValueError, match="3 links"):
        adaptive.order(4, 8, depths=(1, 1))


def test_depths_below_one_are_refused():
    assert adaptive.check_shape(3, 8, depths=(1, 0)) == "adaptive_1f1b needs depths of at least 1, not 0"


def test_one_chunk_only():
    assert (
        adaptive.check_shape(2, 8, 2, depths=(1,))
        == "adaptive_1f1b runs each stage as one chunk: num_chunks must be 1, not 2"
    )


def test_the_hiding_depth_grows_with_the_round_trip():
    # One-way times that a pipeline with forward 20 and backward 40 hides with this depth and no smaller one.
    depths = [hiding_depth(transfer_ms, 20, 40) for transfer_ms in (0, 15, 30, 45, 60, 90)]
    assert depths == [1, 2, 2, 3, 3, 4]


def test_a_hiding_depth_needs_a_stage_that_computes():
    with pytest.raises(ValueError, match="forward_ms \\+ backward_ms > 0"):
        hiding_depth(1, 0, 0)
