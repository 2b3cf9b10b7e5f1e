from itertools import pairwise

from poseidon.schedule import get_schedule
from poseidon.simulate import AllReduceStep, OperationStep, TransferStep, simulate, stage_times


def described(path):
    lines = []
    for step in path:
        if isinstance(step, OperationStep):
            lines.append(f"{step.action.operation()} on {step.stage}")
        elif isinstance(step, TransferStep):
            lines.append(f"{step.action.operation()} from {step.stage} to {step.to_stage}")
        else:
            lines.append(f"all-reduce of {step.stage}")
    return lines


def test_the_path_of_a_small_pipeline_by_hand():
    times = stage_times([1, 1], [2, 5], send_forward_ms=[0.5, 0], send_backward_ms=[0, 0.5], all_reduce_ms=[5, 0])
    assert described(simulate(get_schedule("1f1b").order(2, 2), times).critical_path) == [
        "F0 on 0",
        "F0 from 0 to 1",
        "F0 on 1",
        "B0 on 1",
        "F1 on 1",
        "B1 on 1",
        "B1 from 1 to 0",
        "B1 on 0",
        "all-reduce of 0",
    ]


def test_the_path_stays_on_its_stage_where_it_may():
    # Both the stage and the message are ready at the same time.
    path = simulate(get_schedule("gpipe").order(2, 2), stage_times([1, 1], [1, 1])).critical_path
    assert described(path)[:3] == ["F0 on 0", "F0 from 0 to 1", "F0 on 1"]
    assert described(path)[3:5] == ["F1 on 1", "B0 on 1"]


def test_an_all_reduce_may_make_another_stage_the_last():
    times = stage_times([1, 1], [1, 1], all_reduce_ms=[0, 50])
    path = simulate(get_schedule("1f1b").order(2, 1), times).critical_path
    assert described(path)[-2:] == ["B0 on 1", "all-reduce of 1"]


def test_every_path_runs_without_a_gap_from_zero_to_the_iteration_time(rng, make_order, make_times):
    order = make_order(rng)
    times = make_times(rng, order.num_stages, order.num_chunks)
    timeline = simulate(order, times)
    path = timeline.critical_path
    assert path[0].start_ms == 0
    assert path[-1].end_ms == timeline.iteration_time_ms
    assert all(step.end_ms == following.start_ms for step, following in pairwise(path))
    assert all(isinstance(step, OperationStep | TransferStep) for step in path[:-1])
    assert isinstance(path[-1], AllReduceStep) == (times.all_reduce_ms[path[-1].stage] > 0)


def test_shortening_a_stage_off_the_path_changes_nothing():
    order = get_schedule("1f1b").order(3, 6)
    slow = simulate(order, stage_times([1, 9, 1], [1, 9, 1])).iteration_time_ms
    path = simulate(order, stage_times([1, 9, 1], [1, 9, 1])).critical_path
    counts = [sum(step.stage == stage for step in path if isinstance(step, OperationStep)) for stage in range(3)]
    assert counts[1] == 12
    assert simulate(order, stage_times([1, 8, 1], [1, 9, 1])).iteration_time_ms == slow - 6
