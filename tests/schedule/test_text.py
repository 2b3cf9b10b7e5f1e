import pytest

from poseidon.schedule import (
    Action,
    get_schedule,
    order_from_operations,
    order_from_text,
    order_to_operations,
    order_to_text,
)

SHAPES = [("1f1b", 3, 5, 1), ("eager_1f1b", 4, 9, 1), ("gpipe", 1, 2, 1), ("interleaved_1f1b", 2, 4, 3)]


@pytest.mark.parametrize(("schedule", "num_stages", "num_micro_batches", "num_chunks"), SHAPES)
def test_orders_round_trip_through_both_texts(schedule, num_stages, num_micro_batches, num_chunks):
    order = get_schedule(schedule).order(num_stages, num_micro_batches, num_chunks)
    assert order_from_operations(order_to_operations(order), num_micro_batches, num_chunks) == order
    assert order_from_text(order_to_text(order)) == order
    assert order_from_text(order_to_text(order, separator=",")) == order


def test_a_small_order_reads_as_expected():
    order = get_schedule("1f1b").order(2, 2)
    assert order_to_operations(order) == [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]
    assert order_to_text(order) == "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"


def test_chunks_appear_in_operations_and_in_virtual_stages():
    order = get_schedule("interleaved_1f1b").order(1, 1, 2)
    assert order_to_operations(order) == [["F0.0", "F0.1", "B0.1", "B0.0"]]
    assert order_to_text(order) == "0F0 1F0 1B0 0B0\n"


def test_split_backwards_are_read():
    order = order_from_operations([["F0", "I0", "W0"]], num_micro_batches=1)
    assert order.stages == ((Action("F", 0), Action("I", 0), Action("W", 0)),)
    assert order.splits_backward


def test_empty_cells_of_a_csv_are_bubbles():
    assert order_from_text("0F0,,0B0,\n,1F0,1B0,,\n") == get_schedule("1f1b").order(2, 1)


def test_an_unreadable_operation_is_named_by_stage_and_place():
    with pytest.raises(ValueError, match="stage 1, operation 2: 'Q7' is not an operation"):
        order_from_operations([["F0"], ["F0", "B0", "Q7"]], 1)


def test_an_unreadable_action_is_named_by_its_line():
    with pytest.raises(ValueError, match="line 2: 'F0' is not an action"):
        order_from_text("0F0 0B0\nF0 1B0\n")


def test_an_action_on_the_wrong_line_is_refused():
    with pytest.raises(ValueError, match="line 1: '1F0' belongs to stage 1, but this line is stage 0"):
        order_from_text("0F0 1F0\n1B0\n")


def test_a_text_without_actions_is_refused():
    with pytest.raises(ValueError, match="no actions"):
        order_from_text("\n , \n")
