import pytest

from poseidon.schedule import get_schedule, in_flight, order_from_operations, peak_in_flight


def test_a_split_backward_holds_its_activation_until_the_weight_part():
    order = order_from_operations([["F0", "I0", "F1", "W0", "I1", "W1"]], 2)
    assert in_flight(order) == (2,)


def test_chunks_count_as_parts_of_a_micro_batch():
    assert in_flight(get_schedule("interleaved_1f1b").order(2, 4, 2)) == (2.5, 1.5)


def test_weighted_peaks_follow_the_chunks_that_are_held_together():
    order = order_from_operations([["F0.0", "F0.1", "B0.1", "F1.0", "B0.0", "F1.1", "B1.1", "B1.0"]], 2, 2)
    # Held together: chunk 0, then both, then chunk 0 twice, then both.
    assert peak_in_flight(order, [[3.0, 10.0]]) == (13.0,)
    assert peak_in_flight(order, [[3.0, 1.0]]) == (6.0,)


@pytest.mark.parametrize("name", ["1f1b", "eager_1f1b", "gpipe"])
def test_with_one_chunk_the_weighted_peak_is_the_count_times_the_weight(name):
    order = get_schedule(name).order(4, 7)
    assert peak_in_flight(order, [[2.5]] * 4) == tuple(2.5 * count for count in in_flight(order))


def test_each_stage_needs_its_weights():
    with pytest.raises(ValueError, match="zip"):
        peak_in_flight(get_schedule("1f1b").order(2, 2), [[1.0]])
