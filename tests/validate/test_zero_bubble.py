"""The zero-bubble paper's numbers: what we say of them is what the data and the simulator give."""

import pytest

from poseidon.validate.zero_bubble import FIRST_HOPS, ROUNDING, zero_bubble_rates
from poseidon.validate.zero_bubble_data import bubble_rates, throughputs
from poseidon.validate.zero_bubble_ranking import zero_bubble_ranking


@pytest.fixture(scope="module")
def rates():
    return zero_bubble_rates()


@pytest.fixture(scope="module")
def ranking():
    return zero_bubble_ranking()


def test_the_data_are_the_papers_tables():
    printed = bubble_rates()
    assert len(printed) == 54
    first = printed[0]
    assert (first.schedule, first.value, first.setting.label) == ("1F1B", 0.2431, "1.5B, p 8, m 24")
    assert [entry.setting.num_chunks for entry in printed[:9:3]] == [3, 4, 3]
    assert len(throughputs()) == 54


@pytest.mark.parametrize("schedule", ["1F1B", "ZB-H1", "ZB-H2", "ZB-1p", "ZB-2p", FIRST_HOPS])
def test_rates_are_reproduced_to_the_printed_rounding(rates, schedule):
    errors = rates.errors(schedule)
    assert len(errors) == 9
    assert max(map(abs, errors)) <= ROUNDING


def test_interleaved_rates_with_every_hop_are_near_the_printed_ones_and_never_below(rates):
    errors = rates.errors("1F1B-I")
    assert min(errors) > 0
    assert max(errors) < 0.0036


def test_what_is_not_met_has_a_cause(rates):
    missed = [target for target in rates.targets if not target.met]
    assert [target.description for target in missed] == ["1F1B-I: largest difference"]
    assert all(target.cause for target in missed)
    assert not rates.met


def test_every_clear_pair_is_ranked_as_measured(ranking):
    assert ranking.met
    assert ranking.summary.startswith("58 of 58 pairs ranked as measured")


def test_with_overlapped_transfers_alone_some_pairs_would_be_ranked_wrongly(ranking):
    assert "overlapped transfers for all, 4 pairs would be ranked wrongly" in ranking.notes[0]


def test_throughput_is_predicted_too_high_but_not_by_much(ranking):
    errors = ranking.errors()
    assert min(errors) > -0.01
    assert max(errors) < 0.12
