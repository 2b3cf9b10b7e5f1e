from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from poseidon.inputs.model import Model
from poseidon.profile.measure.cells import AllReduceCell, ComputeCell, TransferCell
from poseidon.profile.measure.job import (
    LARGEST_MESSAGE_BYTES,
    MeasureJob,
    cells_of,
    default_message_bytes,
    default_tp_degrees,
    refusals,
)


@pytest.fixture
def job(dense: Model) -> MeasureJob:
    return MeasureJob(dense, "fast", 64, micro_batch_sizes=(1, 2), tp_degrees=(1, 2), message_bytes=(1024,))


def reasons(job: MeasureJob, world_size: int = 4) -> list[str]:
    return [mistake.message for mistake in refusals(job, world_size, "tiny.yaml")]


def test_every_part_is_measured_at_every_degree_and_size(job: MeasureJob) -> None:
    cells = cells_of(replace(job, recompute=("none", "full")), world_size=1)
    layers = {(cell.tp, cell.micro_batch_size, cell.recompute) for cell in cells if cell.is_layer}
    assert layers == {(tp, size, mode) for tp in (1, 2) for size in (1, 2) for mode in ("none", "full")}
    assert sum(cell.part == "head" for cell in cells if isinstance(cell, ComputeCell)) == 4
    assert len({str(cell) for cell in cells}) == len(cells) == 16


def test_messages_come_first_and_fill_the_node(job: MeasureJob) -> None:
    cells = cells_of(replace(job, tp_degrees=(2,)), world_size=8)
    assert cells[0] == TransferCell(1024)
    groups = [(cell.tp, cell.dp) for cell in cells if isinstance(cell, AllReduceCell)]
    assert groups == [(1, 2), (1, 4), (1, 8), (2, 2), (2, 4)]
    assert all(isinstance(cell, ComputeCell) for cell in cells[6:])


def test_one_process_exchanges_nothing(job: MeasureJob) -> None:
    assert all(isinstance(cell, ComputeCell) for cell in cells_of(job, world_size=1))


def test_message_sizes_span_what_the_model_sends(job: MeasureJob) -> None:
    assert default_message_bytes(job) == (65_536, 262_144)
    large = replace(job, seq_length=8192)  # an activation of 1 MiB
    assert default_message_bytes(large) == (65_536, 262_144, 1_048_576)
    huge = replace(job, seq_length=10_000_000)
    assert default_message_bytes(huge)[-1] == LARGEST_MESSAGE_BYTES


def test_degrees_that_can_be_measured_are_the_default(job: MeasureJob) -> None:
    assert default_tp_degrees(job, 1) == (1,)
    assert default_tp_degrees(job, 8) == (1, 2, 4)
    assert default_tp_degrees(replace(job, seq_length=62), 8) == (1, 2)


def test_what_can_be_measured_is_not_refused(job: MeasureJob) -> None:
    assert reasons(job) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tp_degrees": (3,)}, "TP 3 does not divide the model's 4 attention heads"),
        ({"tp_degrees": (4,), "model": {"ffn_hidden_size": 50}}, "TP 4 does not divide ffn_hidden_size, 50"),
        ({"seq_length": 63}, "TP 2 does not divide the 63 tokens of micro-batch 1"),
        ({"model": {"head_dim": 7}}, "head_dim, 7, is odd: rotary"),
        ({"model": {"max_position_embeddings": 32}}, "longer than max_position_embeddings, 32"),
    ],
)
def test_what_cannot_be_built_is_refused_with_the_reason(job: MeasureJob, changes: dict[str, Any], reason: str) -> None:
    model = job.model.model_copy(update=changes.pop("model", {}))
    assert any(reason in message for message in reasons(replace(job, model=model, **changes)))


def test_an_odd_number_of_tokens_is_fine_without_sequence_parallelism(job: MeasureJob) -> None:
    assert reasons(replace(job, seq_length=63, sequence_parallel=False)) == []


def test_one_process_cannot_measure_what_ranks_exchange(job: MeasureJob) -> None:
    [reason] = reasons(replace(job, tp_degrees=(1, 2, 4)), world_size=1)
    assert "TP above 1 needs several processes: start with torchrun" in reason
