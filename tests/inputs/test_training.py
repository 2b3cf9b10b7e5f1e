from __future__ import annotations

import pytest

from poseidon.errors import InputError
from poseidon.inputs.training import SIMULATED_SCHEDULES, Training
from poseidon.inputs.validation import validate
from poseidon.schedule import SPLIT_SCHEDULES


def test_the_defaults_are_those_of_the_documentation() -> None:
    training = validate(Training, {"global_batch_size": 128, "seq_length": 4096}, "f.yaml")
    assert training.micro_batch_sizes == (1, 2, 4)
    assert training.schedules == ("1f1b",)
    assert training.num_chunks == (2,)
    assert (training.precision, training.recompute) == ("bf16", "none")
    assert training.distributed_optimizer
    assert training.sequence_parallel
    assert training.memory_reserve_fraction == 0.08


def test_a_global_batch_that_no_micro_batch_divides_is_refused() -> None:
    data = {"global_batch_size": 7, "seq_length": 128, "micro_batch_sizes": [2, 4, 8]}
    with pytest.raises(
        InputError, match=r"training.global_batch_size: 7 is not divisible by any DP x micro-batch"
    ) as caught:
        validate(Training, data, "f.yaml", ("training",))
    assert "none of micro_batch_sizes (2, 4, 8) divides it" in str(caught.value)


def test_one_micro_batch_size_that_divides_is_enough() -> None:
    data = {"global_batch_size": 6, "seq_length": 128, "micro_batch_sizes": [2, 4, 8]}
    assert validate(Training, data, "f.yaml").global_batch_size == 6


def test_a_choice_that_is_listed_twice_is_refused() -> None:
    data = {"global_batch_size": 8, "seq_length": 128, "micro_batch_sizes": [1, 2, 1], "schedules": ["gpipe", "gpipe"]}
    with pytest.raises(InputError) as caught:
        validate(Training, data, "f.yaml")
    assert [(mistake.field, mistake.message) for mistake in caught.value.mistakes] == [
        ("micro_batch_sizes[2]", "1 is listed twice"),
        ("schedules[1]", "'gpipe' is listed twice"),
    ]


@pytest.mark.parametrize("name", SIMULATED_SCHEDULES)
def test_a_schedule_that_is_only_simulated_is_refused_with_the_reason(name: str) -> None:
    data = {"global_batch_size": 8, "seq_length": 128, "schedules": ["1f1b", name]}
    with pytest.raises(InputError, match=rf"schedules\[1\]: '{name}' splits its backwards, which the search cannot do"):
        validate(Training, data, "f.yaml")


def test_the_schedules_that_are_only_simulated_are_those_of_the_registry() -> None:
    assert tuple(SPLIT_SCHEDULES) == SIMULATED_SCHEDULES
