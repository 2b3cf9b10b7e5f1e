import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.schedule import KINDS, Action, parse_operation, parse_staged

actions = st.builds(Action, st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(0, 99))


def test_an_operation_of_a_stage_with_one_chunk_names_no_chunk():
    assert Action("F", 3).operation() == "F3"


def test_an_operation_of_a_stage_with_chunks_names_its_chunk():
    assert Action("I", 3, 0).operation(num_chunks=2) == "I3.0"
    assert Action("W", 3, 1).operation(num_chunks=2) == "W3.1"


def test_a_staged_action_counts_chunks_into_the_virtual_stage():
    assert Action("B", 5, 2).staged(stage=1, num_stages=4) == "9B5"


@given(actions, st.integers(1, 100))
def test_operations_round_trip(action, num_chunks):
    assert parse_operation(action.operation(num_chunks)) == action


@given(actions, st.integers(1, 50), st.data())
def test_staged_actions_round_trip(action, num_stages, data):
    stage = data.draw(st.integers(0, num_stages - 1))
    assert parse_staged(action.staged(stage, num_stages), num_stages) == (stage, action)


@pytest.mark.parametrize("text", ["", "F", "0", "X0", "f0", "F-1", "F0.", "F0.1.2", " F0", "F0 ", "F٣", "F1234567890"])
def test_what_is_no_operation_is_refused_with_the_accepted_form(text):
    with pytest.raises(ValueError, match=r"is not an operation: .* as in 'F0', 'B3' or 'F0\.1'"):
        parse_operation(text)


@pytest.mark.parametrize("text", ["", "F0", "0F", "0X0", "(0F3;3B1)OVERLAP_F_B", "-1F0", "0F0.1"])
def test_what_is_no_staged_action_is_refused_with_the_accepted_form(text):
    with pytest.raises(ValueError, match=r"is not an action: .* as in '2F0'"):
        parse_staged(text, 2)
