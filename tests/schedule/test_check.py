import pytest

from poseidon.schedule import Cell, MistakeKind, check_order, order_from_operations, order_from_text


def mistakes_of(*stages, num_micro_batches=2, num_chunks=1):
    order = order_from_operations([stage.split() for stage in stages], num_micro_batches, num_chunks)
    return check_order(order)


def only_mistake_of(*stages, **sizes):
    (mistake,) = mistakes_of(*stages, **sizes)
    return mistake


def test_a_right_order_has_no_mistakes():
    assert mistakes_of("F0 F1 B0 B1", "F0 B0 F1 B1") == ()
    assert mistakes_of("F0 F1 I0 W0 B1", "F0 I0 F1 W0 I1 W1") == ()


def test_a_missing_forward_points_behind_the_stages_list():
    mistake = only_mistake_of("F0 B0 B1")
    assert (mistake.kind, mistake.stage, mistake.position) == (MistakeKind.MISSING, 0, 3)
    assert mistake.message == "stage 0 never runs F1"


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("F0 F1 B0", "stage 0 never runs B1 (or I1 and W1)"),
        ("F0 F1 B0 I1", "stage 0 never runs W1"),
        ("F0 F1 B0 W1", "stage 0 never runs I1"),
    ],
)
def test_a_missing_backward_is_named_by_what_is_there(stage, message):
    mistake = only_mistake_of(stage)
    assert (mistake.kind, mistake.message) == (MistakeKind.MISSING, message)


def test_a_duplicate_points_at_the_second_and_remembers_the_first():
    mistake = only_mistake_of("F0 F1 F0 B0 B1")
    assert (mistake.kind, mistake.cells) == (MistakeKind.DUPLICATE, (Cell(0, 2), Cell(0, 0)))


def test_an_unknown_micro_batch_or_chunk_is_answered_with_the_known_ones():
    assert only_mistake_of("F0 F1 F2 B0 B1").message == "stage 0 has no operation F2: micro-batches are 0 to 1"
    mistake = only_mistake_of("F0.0 F0.1 F0.2 B0.1 B0.0", num_micro_batches=1, num_chunks=2)
    assert mistake.message == "stage 0 has no operation F0.2: micro-batches are 0 to 0, chunks 0 to 1"
    assert mistake.kind is MistakeKind.UNKNOWN


def test_a_backward_before_its_forward_points_at_the_backward():
    for backward in ("B1", "I1 W1"):
        mistake = only_mistake_of("F0 F1 B0 B1", f"F0 B0 {backward} F1")
        assert (mistake.kind, mistake.stage, mistake.position) == (MistakeKind.BACKWARD_FIRST, 1, 2)
        assert mistake.message == f"stage 1 runs {backward[:2]} before its forward F1"


def test_a_weight_part_before_its_input_part_points_at_the_weight_part():
    mistake = only_mistake_of("F0 F1 W0 I0 B1")
    assert (mistake.kind, mistake.position) == (MistakeKind.WEIGHT_FIRST, 2)
    assert mistake.message == "stage 0 runs W0 before its input part I0"


def test_a_backward_is_either_whole_or_split():
    mistake = only_mistake_of("F0 F1 B0 B1 I1 W1")
    assert (mistake.kind, mistake.cells) == (MistakeKind.MIXED, (Cell(0, 4), Cell(0, 3)))
    assert "both B1 and I1" in mistake.message


def test_all_mistakes_of_all_stages_are_found_at_once():
    kinds = [mistake.kind for mistake in mistakes_of("F0 F0 B0 B1", "B0 F0 F1 I1 W1 F9")]
    assert kinds == [
        MistakeKind.DUPLICATE,
        MistakeKind.MISSING,
        MistakeKind.UNKNOWN,
        MistakeKind.BACKWARD_FIRST,
    ]


def test_a_deadlock_names_the_circle():
    mistake = only_mistake_of("F0 B0 F1 B1", "F1 B1 F0 B0")
    assert mistake.kind is MistakeKind.DEADLOCK
    assert mistake.cells == (Cell(0, 1), Cell(1, 0))
    assert mistake.message == (
        "the stages wait for each other in a circle: stage 0 waits with B0 for B0 of stage 1; "
        "stage 1 waits with F1 for F1 of stage 0"
    )


def test_a_deadlock_leaves_out_stages_that_merely_wait_for_the_circle():
    mistake = only_mistake_of("F0 F1 B0 B1", "F0 B0 F1 B1", "F1 B1 F0 B0")
    assert mistake.kind is MistakeKind.DEADLOCK
    assert {cell.stage for cell in mistake.cells} == {1, 2}


def test_chunks_that_are_visited_backwards_deadlock():
    mistake = only_mistake_of("F0.1 F0.0 B0.1 B0.0", num_micro_batches=1, num_chunks=2)
    assert mistake.kind is MistakeKind.DEADLOCK
    assert mistake.message.endswith("stage 0 waits with F0.1 for F0.0 of stage 0")


def test_one_stage_may_take_its_backwards_in_any_order():
    assert mistakes_of("F0 F1 B1 B0") == ()


def test_an_order_of_pytorch_with_split_backwards_is_accepted():
    text = (
        "0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3\n"
        "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3\n"
    )
    assert check_order(order_from_text(text)) == ()
