from __future__ import annotations

import io
import math
import sys

import pytest

from poseidon.output import progress as module
from poseidon.output.progress import display, progress_line
from poseidon.search.watch import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(seconds: float, best_ms: float = 110.0, lower_bound_ms: float = 99.0) -> Progress:
    return Progress(seconds, best_ms, lower_bound_ms, search_nodes=12_345, problems_done=3, problems=42)


def test_a_line_has_all_the_numbers() -> None:
    expected = "[   12.1 s] bound 99.00 ms  incumbent 110.00 ms  gap 10.0 %  search nodes 12,345  outer choices 3/42"
    assert progress_line(at(12.1)) == expected


def test_before_the_first_plan_there_are_dashes() -> None:
    assert "incumbent -  gap -" in progress_line(at(1.0, best_ms=math.inf))
    assert "bound -" in progress_line(at(1.0, best_ms=math.inf, lower_bound_ms=math.inf))


def test_job_logs_get_a_line_every_two_to_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with display(quiet=False) as shown:
        for tenth in range(1200):
            shown.show(at(tenth / 10))
    times = [float(line[1:].split()[0]) for line in log.getvalue().splitlines()]
    waits = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    assert times[0] == 2.0
    assert all(2 <= wait <= 10.11 for wait in waits)
    assert waits[-1] == pytest.approx(10, abs=0.2)
    assert "\r" not in log.getvalue()


def test_a_terminal_gets_one_table_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with display(quiet=False) as shown:
        shown.show(at(0.1))
        assert terminal.getvalue() == ""
        shown.show(at(module.FIRST_TABLE_S + 0.1))
    text = terminal.getvalue()
    assert "incumbent" in text
    assert "12,345" in text
    assert text.rstrip().endswith("\x1b[2K")


def test_a_ray_job_gets_lines_even_where_its_log_looks_like_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with display(quiet=False) as shown:
        shown.show(at(2.5))
    assert terminal.getvalue() == progress_line(at(2.5)) + "\n"


def test_quiet_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with display(quiet=True) as shown:
        shown.show(at(100.0))
    assert terminal.getvalue() == ""
