"""Schedules with split backwards: equal to PyTorch's, with the memory and the bubbles that make them what they are."""

import hashlib
from functools import cache
from pathlib import Path

import pytest

from poseidon.schedule import (
    SPLIT_SCHEDULES,
    check_order,
    find_schedule,
    get_schedule,
    in_flight,
    order_from_text,
    order_to_operations,
    order_to_text,
    peak_in_flight,
)

PYTORCH = {
    "InterleavedZeroBubble": "zb_h1",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipev",
    "Interleaved1F1B": "interleaved_1f1b",
}
SHAPES = [(1, 1), (1, 5), (2, 1), (2, 7), (3, 2), (4, 8), (4, 13), (5, 30), (8, 16), (8, 40)]


@cache
def pytorch_digests():
    """(our name, stages, micro-batches, chunks) to the digest of the order that PyTorch makes."""
    path = Path(__file__).parent / "data" / "torch-order-digests.txt"
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {(PYTORCH[name], int(n), int(m), int(v)): digest for name, n, m, v, digest in rows}


def digest(order):
    return hashlib.sha256(order_to_text(order).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", sorted(set(PYTORCH.values())))
@pytest.mark.parametrize("num_stages", range(1, 9))
def test_every_order_is_pytorchs(name, num_stages):
    expected = {shape: text for shape, text in pytorch_digests().items() if shape[:2] == (name, num_stages)}
    assert len(expected) > 16
    schedule = find_schedule(name)
    shapes = [shape for shape in expected if schedule.check_shape(*shape[1:]) is None]
    refused = [shape for shape in expected if shape not in shapes]
    assert all(name == "interleaved_1f1b" and shape[2] < num_stages for shape in refused)
    assert [shape for shape in shapes if digest(schedule.order(*shape[1:])) != expected[shape]] == []


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "num_chunks"), [("InterleavedZeroBubble", 3), ("ZBVZeroBubble", 2), ("DualPipeV", 2)])
@pytest.mark.parametrize(("num_stages", "num_micro_batches"), [(2, 4), (3, 6), (5, 20)])
def test_every_order_is_that_of_the_installed_pytorch(name, num_stages, num_micro_batches, num_chunks):
    visualizer = pytest.importorskip("torch.distributed.pipelining._schedule_visualizer")
    ranks = visualizer.get_schedule_ops(name, num_stages, num_micro_batches, num_chunks)
    lines = [" ".join(str(action) for action in rank if action is not None) for rank in ranks]
    theirs = order_from_text("\n".join(lines))
    assert theirs == find_schedule(PYTORCH[name]).order(num_stages, num_micro_batches, num_chunks)


@pytest.mark.parametrize("name", ["zb_h1", "zb_h2"])
@pytest.mark.parametrize(("num_stages", "num_micro_batches"), SHAPES)
def test_orders_with_one_chunk_can_be_run_and_split_every_backward(name, num_stages, num_micro_batches):
    order = find_schedule(name).order(num_stages, num_micro_batches)
    assert check_order(order) == ()
    assert order.num_operations == 3 * num_stages * num_micro_batches


def test_zb_h1_by_hand():
    # Figure 2 of arXiv 2401.10241, with three stages: the first one's weight parts come at once.
    order = find_schedule("zb_h1").order(3, 4)
    assert order_to_operations(order) == [
        ["F0", "F1", "F2", "I0", "W0", "F3", "I1", "W1", "I2", "W2", "I3", "W3"],
        ["F0", "F1", "I0", "F2", "I1", "W0", "F3", "I2", "W1", "I3", "W2", "W3"],
        ["F0", "I0", "F1", "I1", "F2", "I2", "W0", "F3", "I3", "W1", "W2", "W3"],
    ]


def test_zb_h2_warms_up_twice_as_long():
    order = find_schedule("zb_h2").order(3, 6)
    assert [order.warmup_forwards(stage) for stage in range(3)] == [5, 3, 1]
    assert order_to_operations(order)[0][:8] == ["F0", "F1", "F2", "F3", "F4", "I0", "W0", "F5"]


@pytest.mark.parametrize(("num_stages", "num_micro_batches"), [(2, 8), (4, 8), (4, 20), (8, 32)])
def test_zb_h1_holds_no_more_than_1f1b_on_its_first_stage_and_zb_h2_at_most_twice(num_stages, num_micro_batches):
    most = max(in_flight(get_schedule("1f1b").order(num_stages, num_micro_batches)))
    assert max(in_flight(find_schedule("zb_h1").order(num_stages, num_micro_batches))) == most
    assert max(in_flight(find_schedule("zb_h2").order(num_stages, num_micro_batches))) == min(
        num_micro_batches, 2 * num_stages - 1
    )


@pytest.mark.parametrize(("num_stages", "num_micro_batches"), [(2, 8), (4, 12), (6, 24)])
def test_zbv_holds_as_much_on_every_stage_as_1f1b_on_its_first(num_stages, num_micro_batches):
    order = find_schedule("zbv").order(num_stages, num_micro_batches, 2)
    assert max(in_flight(order)) == num_stages
    assert min(in_flight(order)) > num_stages / 2


def test_an_input_part_frees_what_the_weight_part_does_not_need():
    order = find_schedule("zb_h1").order(4, 8)
    whole = peak_in_flight(order, [[10.0]] * 4)
    freed = peak_in_flight(order, [[10.0]] * 4, [[2.0]] * 4)
    assert whole == (40, 40, 40, 40)
    assert freed == (40, 32, 24, 16)


@pytest.mark.parametrize("name", SPLIT_SCHEDULES)
def test_counts_are_those_of_the_order(name):
    schedule = find_schedule(name)
    num_chunks = 1 if name == "zb_h2" else 2
    order = schedule.order(3, 9, num_chunks)
    for stage in range(3):
        assert schedule.warmup_forwards(stage, 3, 9, num_chunks) == order.warmup_forwards(stage)
        assert schedule.in_flight(stage, 3, 9, num_chunks) == in_flight(order)[stage]


@pytest.mark.parametrize(
    ("name", "shape", "reason"),
    [
        ("zb_h2", (2, 4, 2), "zb_h2 runs each stage as one chunk: num_chunks must be 1, not 2"),
        ("zbv", (2, 4, 1), "zbv runs each stage as two chunks in a V: num_chunks must be 2, not 1"),
        ("dualpipev", (2, 4, 3), "dualpipev runs each stage as two chunks in a V: num_chunks must be 2, not 3"),
        (
            "dualpipev",
            (4, 7, 2),
            "dualpipev needs as many micro-batches as chunks of all stages: "
            "num_micro_batches must be at least 8, not 7",
        ),
        (
            "zb_h1",
            (2, 5, 2),
            "zb_h1 with chunks needs rounds of equal size: num_micro_batches must be a multiple of 2 "
            "(num_micro_batches // num_stages), not 5",
        ),
    ],
)
def test_shapes_that_cannot_be_run_are_refused_with_the_reason(name, shape, reason):
    assert find_schedule(name).check_shape(*shape) == reason
    with pytest.raises(ValueError, match=reason.split(":")[0]):
        find_schedule(name).order(*shape)


@pytest.mark.parametrize("name", SPLIT_SCHEDULES)
def test_depths_are_for_adaptive_1f1b_alone(name):
    reason = find_schedule(name).check_shape(2, 4, 1 if name == "zb_h2" else 2, depths=(1,))
    assert reason == f"{name} takes no depths: they belong to adaptive_1f1b"


@pytest.mark.parametrize("text", ["zb_h1", "zb-h1", "ZB-H1"])
def test_capitals_and_hyphens_do_not_matter_where_orders_are_looked_up(text):
    assert find_schedule(text).name == "zb_h1"
    assert find_schedule("DualPipeV").name == "dualpipev"


@pytest.mark.parametrize("name", SPLIT_SCHEDULES)
def test_the_search_is_refused_a_schedule_that_it_cannot_bound(name):
    with pytest.raises(ValueError, match=rf"{name} splits its backwards, which the search cannot do: .*accepts 1f1b"):
        get_schedule(name)


def test_an_unknown_schedule_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="unknown schedule 'zb_h3'; did you mean 'zb_h"):
        find_schedule("zb_h3")
