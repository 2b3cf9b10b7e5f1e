import textwrap

from poseidon.schedule import check_order, draw_order, get_schedule, order_from_operations


def drawn(text):
    return textwrap.dedent(text).strip("\n")


def test_a_right_order_is_drawn_by_unit_steps():
    assert draw_order(get_schedule("1f1b").order(3, 3)) == drawn("""
        step     0  1  2  3  4  5  6  7  8  9
        stage 0 F0 F1 F2  .  . B0  . B1  . B2
        stage 1  . F0 F1  . B0 F2 B1  . B2  .
        stage 2  .  . F0 B0 F1 B1 F2 B2  .  .
    """)


def test_the_wrong_cell_is_marked_and_explained():
    order = order_from_operations([["F0", "F1", "B0", "B1"], ["F0", "B0", "B1", "F1"]], 2)
    assert draw_order(order, check_order(order)) == drawn("""
        step     0  1  2  3
        stage 0 F0 F1  . B0 |   B1
        stage 1  . F0 B0  . | >B1< (F1)
        backward before its forward: stage 1 runs B1 before its forward F1
    """)


def test_a_missing_operation_is_marked_behind_its_stage():
    order = order_from_operations([["F0", "B0", "B1"]], 2)
    assert draw_order(order, check_order(order)) == drawn("""
        step     0  1  2
        stage 0 F0 B0 B1 | >?<
        missing operation: stage 0 never runs F1
    """)


def test_every_cell_of_a_deadlock_is_marked():
    order = order_from_operations([["F0", "B0", "F1", "B1"], ["F1", "B1", "F0", "B0"]], 2)
    drawing = draw_order(order, check_order(order))
    assert drawing.count(">B0<") == 1
    assert drawing.count(">F1<") == 1
    assert drawing.splitlines()[1] == "stage 0 F0 | >B0< F1 B1"


def test_a_long_order_is_drawn_around_its_first_mistake():
    operations = [f"F{microbatch}" for microbatch in range(50)] + [f"B{microbatch}" for microbatch in range(50)]
    operations[70] = "B19"
    order = order_from_operations([operations], 50)
    lines = draw_order(order, check_order(order), num_steps=10).splitlines()
    assert lines[1].split()[2:] == ["B15", "B16", "B17", "B18", "(B19)", ">B19<", "B21", "B22", "B23", "B24"]


def test_a_window_can_be_asked_for():
    lines = draw_order(get_schedule("gpipe").order(1, 30), first_step=28, num_steps=4).splitlines()
    assert lines[1].split() == ["stage", "0", "F28", "F29", "B0", "B1"]
    assert lines[0].split() == ["step", "28", "29", "30", "31"]
