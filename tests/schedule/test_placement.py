import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.schedule import find_schedule, order_from_text, order_to_text
from poseidon.schedule.placement import place_of, virtual_stage


@given(st.sampled_from(["loop", "v"]), st.integers(1, 9), st.integers(0, 40))
def test_places_and_virtual_stages_are_each_others_inverse(placement, num_stages, virtual):
    stage, chunk = place_of(placement, num_stages, virtual)
    assert 0 <= stage < num_stages
    assert virtual_stage(placement, num_stages, stage, chunk) == virtual


def test_a_loop_starts_again_and_a_v_turns_round():
    assert [place_of("loop", 3, virtual)[0] for virtual in range(6)] == [0, 1, 2, 0, 1, 2]
    assert [place_of("v", 3, virtual)[0] for virtual in range(9)] == [0, 1, 2, 2, 1, 0, 0, 1, 2]


def test_the_text_of_a_v_says_that_it_is_one():
    order = find_schedule("zbv").order(3, 5, 2)
    assert order_to_text(order).splitlines()[2].startswith("2F0 3F0")
    assert order_from_text(order_to_text(order)) == order


def test_a_pair_that_may_overlap_is_read_as_its_two_operations():
    text = "0F0 0F1 3F0 3B0 (3F1;0B0)OVERLAP_F_B 3B1 0B1\n1F0 2F0 2B0 1F1 1B0 2F1 2B1 1B1\n"
    order = order_from_text(text)
    assert order.placement == "v"
    assert [action.operation(2) for action in order.stages[0]] == [
        "F0.0",
        "F1.0",
        "F0.1",
        "B0.1",
        "F1.1",
        "B0.0",
        "B1.1",
        "B1.0",
    ]


def test_a_virtual_stage_on_the_wrong_line_of_a_v_is_named():
    with pytest.raises(ValueError, match="line 2: '3F0' belongs to stage 0, but this line is stage 1"):
        order_from_text("0F0 3F0 3B0 0B0\n1F0 3F0\n")
