"""Searches of studies: Ctrl-C ends the study, and configurations are written as one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.inputs.experiment import load_experiment
from poseidon.paper.searching import planned, searched
from poseidon.paper.stages_text import stages_text
from poseidon.search.backend import InProcess
from poseidon.search.options import SearchOptions
from poseidon.search.result import Solution, StageChoice
from poseidon.search.shard import Event
from tests.search.example import BEST, BEST_MS, EXAMPLE

Write = Callable[..., Path]


class Interrupted(InProcess):
    """Ctrl-C is pressed while the first shard runs."""

    def wait(self, seconds: float) -> list[Event]:
        raise KeyboardInterrupt


@pytest.mark.parametrize("policy", ["exact", "paper", "brute-force"])
def test_ctrl_c_is_not_taken_for_the_end_of_a_search(policy: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        searched([EXAMPLE], SearchOptions(policy=policy), Interrupted())


def test_ctrl_c_ends_the_search_for_a_plan(write_experiment: Write) -> None:
    with pytest.raises(KeyboardInterrupt):
        planned(load_experiment(write_experiment()), Interrupted())


def test_without_it_the_optimum_is_found() -> None:
    result = searched([EXAMPLE], SearchOptions())
    assert result.best is not None
    assert result.best.iteration_time_ms == BEST_MS


def test_stages_are_written_by_kind_with_the_layers_of_each() -> None:
    assert stages_text(Solution(EXAMPLE, BEST, BEST_MS)) == "slow: 1; fast: 2"
    chunks = (StageChoice(0, (1, 2)), StageChoice(0, (2, 1)))
    assert stages_text(Solution(replace(EXAMPLE, num_chunks=2), chunks, 1.0)) == "fast: 1+2 2+1"
