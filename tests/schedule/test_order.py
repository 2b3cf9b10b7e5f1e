import pytest

from poseidon.schedule import Action, Order, order_from_operations


@pytest.mark.parametrize(
    ("sizes", "name"), [((0, 1, 1), "num_stages"), ((1, 0, 1), "num_micro"), ((1, 1, 0), "num_chunks")]
)
def test_sizes_below_one_are_refused(sizes, name):
    with pytest.raises(ValueError, match=f"{name}.* must be at least 1, not 0"):
        Order(*sizes, ((),) * sizes[0])


def test_every_stage_needs_a_list():
    with pytest.raises(ValueError, match="an order of 2 stages needs 2 lists, not 1"):
        Order(2, 1, 1, ((Action("F", 0), Action("B", 0)),))


def test_warmup_forwards_are_those_before_the_first_backward():
    order = order_from_operations([["F0", "F1", "I0", "F2", "W0"], ["F0", "B0"], ["F0", "F1"]], 3)
    assert [order.warmup_forwards(stage) for stage in range(3)] == [2, 1, 2]


def test_operations_are_counted_over_all_stages():
    order = order_from_operations([["F0", "B0"], ["F0", "I0", "W0"]], 1)
    assert order.num_operations == 5
    assert order.splits_backward
