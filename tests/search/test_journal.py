"""A search that is stopped again and again ends with the plan and the bound of one that is not."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.cost.problem import Problem
from poseidon.errors import InputError
from poseidon.search import journal as journal_module
from poseidon.search.count import count_configurations
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, SolutionStatus, TerminationReason
from poseidon.search.solve import solve
from poseidon.search.warm_start import EarlierPlan, EarlierStage
from poseidon.search.watch import Progress, Watch
from tests.judge import Draw
from tests.search.checking import same
from tests.search.example import EXAMPLE, HARD, MEDIUM, medium_problem
from tests.search.scattered import Scattered, small_slices

Report = Callable[[Progress], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "search.journal"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches keep their progress from the start and report it at every opportunity."""
    monkeypatch.setattr(journal_module, "FIRST_WRITE_S", 0.0)
    monkeypatch.setattr(Watch.__init__, "__defaults__", (None, None, 0.0))


def after(reports: int) -> Report:
    """Ctrl-C at the report of that number."""
    left = [reports]

    def report(progress: Progress) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    return report


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def numbers(path: Path) -> list[int]:
    """Of the shards whose outcome is recorded."""
    return [record["outcome"]["number"] for record in records(path) if "outcome" in record]


def again_and_again(
    problems: Sequence[Problem], options: SearchOptions, path: Path, seed: int, losses: float = 0.0
) -> tuple[SearchResult, int]:
    """Stops a search at random and resumes it until it is over; the answer, and how often it was stopped."""
    chance, seen = random.Random(seed), 0
    for stops in range(200):
        workers = Scattered(chance.randrange(10**6), chance.randint(1, 4), losses)
        report = after(chance.randint(1, 15))
        with small_slices(chance.randint(1, 3), chance.choice((1, 100))):
            result = solve(problems, options, report, backend=workers, journal=path, resume=True)
        if result.termination is not TerminationReason.INTERRUPTED:
            return result, stops
        if path.exists():
            assert len(numbers(path)) == len(set(numbers(path))) >= seen
            seen = len(numbers(path))
    raise AssertionError("the search does not get anywhere")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("policy", ["exact", "paper", "brute-force"])
def test_whatever_stops_a_search_its_answer_is_the_same(path: Path, policy: str) -> None:
    draw, total = Draw(5), 0
    for number in range(16):
        problems = draw.problems(number)
        if policy == "exact" and number % 8 == 0:
            problems.append(MEDIUM)
        options = SearchOptions(policy=policy, top=1 + number % 3, warmup_samples=5, num_thresholds=1)
        expected = solve(problems, options)
        result, stops = again_and_again(problems, options, path, number, losses=0.1 * (number % 2))
        total += stops
        assert result.solutions == expected.solutions
        assert result.status is expected.status
        assert result.lower_bound_ms == same(expected.lower_bound_ms)
        assert result.counters.bound_alarms == 0
        assert not path.exists()
    assert total > 3


@pytest.mark.usefixtures("at_once")
def test_brute_force_over_many_stops_times_every_configuration_once(path: Path) -> None:
    problems, draw, total = [EXAMPLE], Draw(9), 0
    while len(problems) < 5:
        problems += [one for one in draw.problems(len(problems)) if 100 < count_configurations(one) < 600]
    for number, problem in enumerate(problems):
        result, stops = again_and_again([problem], SearchOptions(policy="brute-force"), path, number)
        assert result.counters.simulations == count_configurations(problem)
        total += stops
    assert total > 3


LIMITED = SearchOptions(num_thresholds=1, warmup_samples=0, top=2)
PROBLEMS = [MEDIUM, EXAMPLE]


@pytest.fixture
def stopped(path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of a search that was stopped: one of its outer choices is done, of the other a part."""
    monkeypatch.setattr("poseidon.search.driver.FIRST_NODES", 200)
    monkeypatch.setattr("poseidon.search.driver.MOST_NODES", 200)

    def report(progress: Progress) -> None:
        if path.exists() and len(numbers(path)) > 3:
            raise KeyboardInterrupt

    result = solve(PROBLEMS, LIMITED, report, journal=path)
    assert result.termination is TerminationReason.INTERRUPTED
    assert len(numbers(path)) > 3
    return path


def test_a_search_in_this_process_goes_on_where_an_outer_choice_was_done(stopped: Path) -> None:
    expected = solve(PROBLEMS, LIMITED)
    result = solve(PROBLEMS, LIMITED, journal=stopped, resume=True)
    assert (result.status, result.termination) == (SolutionStatus.OPTIMAL, TerminationReason.COMPLETE)
    assert result.solutions == expected.solutions
    assert result.lower_bound_ms == expected.lower_bound_ms
    assert not stopped.exists()


def test_a_journal_that_breaks_off_anywhere_is_gone_on_with(stopped: Path) -> None:
    whole, expected = stopped.read_bytes(), solve(PROBLEMS, LIMITED)
    head = whole.index(b"\n") + 1
    chance = random.Random(1)
    for length in (head, len(whole) - 1, *(chance.randint(head, len(whole)) for _ in range(6))):
        stopped.write_bytes(whole[:length])
        result = solve(PROBLEMS, LIMITED, journal=stopped, resume=True)
        assert result.solutions == expected.solutions
        assert result.lower_bound_ms == same(expected.lower_bound_ms)


def test_a_half_written_line_is_cut_off(stopped: Path) -> None:
    whole = stopped.read_bytes()
    with stopped.open("ab") as file:
        file.write(whole.splitlines()[-1][:40])
    solve(PROBLEMS, LIMITED, after(0), journal=stopped, resume=True)
    assert stopped.read_bytes()[: len(whole)] == whole
    assert len(records(stopped)) >= len(whole.splitlines())


def test_what_was_done_is_not_done_again(stopped: Path) -> None:
    seen: list[int] = []
    done = sum(record["outcome"]["counters"]["search_nodes"] for record in records(stopped) if "outcome" in record)
    alone = solve(PROBLEMS, LIMITED)
    result = solve(PROBLEMS, LIMITED, lambda progress: seen.append(progress.search_nodes), journal=stopped, resume=True)
    assert seen[0] >= done > 100
    assert result.counters.search_nodes < alone.counters.search_nodes + done


OTHERS = {
    "another problem": ([replace(MEDIUM, num_micro_batches=20), EXAMPLE], LIMITED),
    "another name": ([MEDIUM, replace(EXAMPLE, name="other")], LIMITED),
    "another order": ([EXAMPLE, MEDIUM], LIMITED),
    "one problem less": ([MEDIUM], LIMITED),
    "another policy": (PROBLEMS, replace(LIMITED, policy="paper")),
    "another seed": (PROBLEMS, replace(LIMITED, seed=1)),
    "more plans": (PROBLEMS, replace(LIMITED, top=3)),
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_journal_of_another_search_is_refused(stopped: Path, other: str) -> None:
    before = stopped.read_bytes()
    with pytest.raises(InputError, match="is the journal of another search") as refused:
        solve(*OTHERS[other], journal=stopped, resume=True)
    assert str(refused.value).startswith(f"{stopped}: search: ")
    assert "\n" not in str(refused.value)
    assert stopped.read_bytes() == before


def test_another_time_limit_is_no_other_search(stopped: Path) -> None:
    limited = replace(LIMITED, time_limit_s=100.0)
    assert solve([medium_problem(), EXAMPLE], limited, journal=stopped, resume=True).solutions


@pytest.mark.parametrize("text", ["a plan\n", "[1, 2]\n", "{}\n", '{"schema": "poseidon.plan/1"}\n', "\x00\xff\n"])
def test_a_file_that_is_no_journal_is_refused_in_one_line(path: Path, text: str) -> None:
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as refused:
        solve([EXAMPLE], journal=path, resume=True)
    assert str(refused.value).startswith(f"{path}: ")
    assert "accepted: poseidon.journal/1" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == text.encode("latin-1")


def test_an_empty_file_is_a_journal_that_was_not_begun(path: Path) -> None:
    path.touch()
    assert solve([EXAMPLE], journal=path, resume=True).solutions


def test_a_search_that_ends_at_once_leaves_nothing(path: Path) -> None:
    solve([EXAMPLE], journal=path)
    solve([EXAMPLE], journal=path, resume=True)
    assert not path.exists()


@pytest.mark.usefixtures("at_once")
def test_a_search_that_is_over_takes_its_journal_along(path: Path) -> None:
    there: list[bool] = []
    result = solve(PROBLEMS, LIMITED, lambda progress: there.append(path.exists()), journal=path)
    assert result.termination is TerminationReason.COMPLETE
    assert any(there)
    assert not path.exists()


def test_a_time_limit_leaves_the_journal(path: Path) -> None:
    result = solve([HARD], SearchOptions(time_limit_s=0.7, warmup_samples=0), journal=path)
    assert result.termination is TerminationReason.TIME_LIMIT
    assert numbers(path)
    more = solve([HARD], SearchOptions(time_limit_s=0.5, warmup_samples=0), journal=path, resume=True)
    assert more.best is not None
    assert result.best is not None
    assert more.best.iteration_time_ms <= result.best.iteration_time_ms
    assert more.lower_bound_ms >= result.lower_bound_ms
    assert path.exists()


def test_without_resume_an_older_journal_gives_way(stopped: Path) -> None:
    before = records(stopped)
    solve(PROBLEMS, replace(LIMITED, seed=1), after(9), journal=stopped)
    assert records(stopped)[0] != before[0]


def test_a_folder_that_cannot_be_written_to_is_one_clear_line(tmp_path: Path, at_once: None) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        solve(PROBLEMS, LIMITED, journal=tmp_path / "nowhere" / "search.journal")


def test_the_plan_that_a_search_began_from_is_not_forgotten(stopped: Path) -> None:
    # What was searched was searched for faster plans than the one given: without it the optimum would be lost.
    best = solve([MEDIUM], LIMITED).best
    assert best is not None
    stages = tuple(EarlierStage(MEDIUM.kinds[stage.kind].name, stage.layers) for stage in best.stages)

    def report(progress: Progress) -> None:
        if len(numbers(stopped)) > 2:
            raise KeyboardInterrupt

    stopped.write_bytes(b"")
    solve([MEDIUM], LIMITED, report, EarlierPlan("medium", stages), journal=stopped)
    assert stopped.exists()
    result = solve([MEDIUM], LIMITED, journal=stopped, resume=True)
    assert result.status is SolutionStatus.OPTIMAL
    assert result.best is not None
    assert result.best.iteration_time_ms == same(best.iteration_time_ms)


def test_an_enumeration_of_one_outer_choice_is_kept_part_by_part(
    path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at = time.perf_counter() + 10

    def report(progress: Progress) -> None:
        if time.perf_counter() > stop_at or (path.exists() and len(numbers(path)) > 1):
            raise KeyboardInterrupt

    monkeypatch.setattr("poseidon.search.driver.ENUMERATED_NODES", 20_000)
    solve([HARD], SearchOptions(policy="brute-force"), report, journal=path)
    first = numbers(path)
    stop_at = time.perf_counter()
    result = solve([HARD], SearchOptions(policy="brute-force"), report, journal=path, resume=True)
    assert len(first) > 1
    assert numbers(path)[: len(first)] == first
    assert result.counters.simulations > 2_000
