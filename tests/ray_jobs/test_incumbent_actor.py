"""The actor as a plain object: calls in any order, a restart, searches one after the other."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from poseidon.search.shard import Found
from ray_jobs.incumbent_actor import IncumbentActor, News, Rules
from tests.search.example import BEST

Answer = TypeVar("Answer")
RULES = Rules(search=1, names=("b", "a"), count=1, tie=0.0, shares=True)
PLAN = Found(0, BEST, 27.0)
FASTER = Found(1, BEST, 26.0)


def wait(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    return asyncio.run(coroutine)


def started(tmp_path: Path) -> IncumbentActor:
    actor = IncumbentActor(str(tmp_path / "kept"))
    wait(actor.begin(RULES))
    return actor


def news(actor: IncumbentActor, search: int = 1) -> News:
    return wait(actor.news(search, "", 0, 0.0))


def offers(actor: IncumbentActor, search: int = 1) -> list[Found]:
    return wait(actor.offers(search, "", 0, 0.0))[2]


def test_the_best_plan_is_the_time_to_beat_and_only_goes_down(tmp_path: Path) -> None:
    actor = started(tmp_path)
    assert news(actor).cutoff_ms == math.inf
    for found in (PLAN, FASTER, PLAN, FASTER):
        wait(actor.offer(1, found))
    assert (news(actor).cutoff_ms, news(actor).rank) == (26.0, 0)
    assert offers(actor) == [PLAN, FASTER]


def test_a_plan_that_arrives_before_its_search_waits_for_it(tmp_path: Path) -> None:
    actor = IncumbentActor(str(tmp_path / "kept"))
    wait(actor.offer(2, PLAN))
    wait(actor.offer(1, FASTER))
    wait(actor.begin(RULES))
    assert offers(actor) == [FASTER]
    assert news(actor).cutoff_ms == 26.0


def test_whoever_waits_is_told_at_once(tmp_path: Path) -> None:
    async def offer_while_somebody_waits() -> News:
        actor = IncumbentActor(str(tmp_path / "kept"))
        await actor.begin(RULES)
        known = await actor.news(1, "", 0, 0.0)
        waiting = asyncio.create_task(actor.news(1, known.epoch, known.version, 3600.0))
        await asyncio.sleep(0)
        await actor.offer(1, PLAN)
        return await asyncio.wait_for(waiting, 30)

    assert wait(offer_while_somebody_waits()).cutoff_ms == 27.0


def test_another_actor_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    before = started(tmp_path)
    wait(before.offer(1, FASTER))
    after = IncumbentActor(str(tmp_path / "kept"))
    assert offers(after) == [FASTER]
    assert news(after).cutoff_ms == 26.0
    assert news(after).epoch != news(before).epoch


def test_an_actor_that_knows_nothing_ends_no_search(tmp_path: Path) -> None:
    """Its workers would hear no news for the rest of the search."""
    actor = IncumbentActor(str(tmp_path / "kept"))
    assert not news(actor).is_over
    wait(actor.begin(RULES))
    wait(actor.offer(1, PLAN))
    assert news(actor).cutoff_ms == 27.0


def test_calls_of_an_earlier_search_that_come_late_change_nothing(tmp_path: Path) -> None:
    actor = started(tmp_path)
    wait(actor.begin(replace(RULES, search=2)))
    wait(actor.set_flags(1, True, True))
    wait(actor.offer(1, PLAN))
    wait(actor.end(1))
    wait(actor.begin(RULES))
    assert news(actor, 1).is_over
    present = news(actor, 2)
    assert (present.is_over, present.stop, present.hungry, present.cutoff_ms) == (False, False, False, math.inf)
    assert offers(actor, 2) == []


def test_the_end_of_a_search_that_comes_before_its_begin_stays_the_end(tmp_path: Path) -> None:
    actor = IncumbentActor(str(tmp_path / "kept"))
    wait(actor.end(1))
    wait(actor.begin(RULES))
    assert news(actor).is_over
    assert news(IncumbentActor(str(tmp_path / "kept"))).is_over
