import numpy as np
import pytest

from poseidon.simulate import stage_times


def test_numbers_stand_for_one_chunk():
    times = stage_times([1, 2], [3, 4])
    assert times.forward_ms.tolist() == [[1], [2]]
    assert (times.num_stages, times.num_chunks) == (2, 1)
    assert times.all_reduce_ms.tolist() == [0, 0]


def test_a_split_backward_takes_half_and_half_unless_told_otherwise():
    times = stage_times([1], [3])
    assert (times.input_ms.tolist(), times.weight_ms.tolist()) == ([[1.5]], [[1.5]])
    times = stage_times([1], [3], input_ms=[1])
    assert times.weight_ms.tolist() == [[2]]
    times = stage_times([1], [3], input_ms=[5], weight_ms=[7])
    assert (times.input_ms.tolist(), times.weight_ms.tolist()) == ([[5]], [[7]])


def test_the_arrays_are_read_only():
    times = stage_times([1], [1])
    for name in ("forward_ms", "input_ms", "weight_ms", "send_forward_ms"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(times, name)[0] = 2


def test_arrays_given_are_copied():
    forward = np.array([1.0, 2.0])
    times = stage_times(forward.tolist(), [1, 1])
    forward[0] = 9
    assert times.forward_ms[0, 0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"forward_ms": [], "backward_ms": []}, "at least one stage"),
        ({"forward_ms": [1, 1], "backward_ms": [1]}, r"backward_ms must have the shape \(2, 1\), not \(1, 1\)"),
        ({"forward_ms": [[1, 1]], "backward_ms": [1]}, r"backward_ms must have the shape \(1, 2\)"),
        ({"forward_ms": [[1, 1], [1]], "backward_ms": [1, 1]}, "forward_ms needs as many chunks for each stage"),
        ({"forward_ms": [-1], "backward_ms": [1]}, "forward_ms must be finite and at least 0"),
        ({"forward_ms": [1], "backward_ms": [float("inf")]}, "backward_ms must be finite"),
        ({"forward_ms": [1], "backward_ms": [1], "all_reduce_ms": [float("nan")]}, "all_reduce_ms must be finite"),
        ({"forward_ms": [1], "backward_ms": [1], "send_forward_ms": [1, 1]}, "send_forward_ms must have the shape"),
        ({"forward_ms": [1], "backward_ms": [1], "input_ms": [2]}, "input_ms must be at most backward_ms"),
    ],
)
def test_what_is_no_pipeline_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        stage_times(**arguments)
