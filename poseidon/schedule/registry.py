"""The known schedules by name."""

from __future__ import annotations

import difflib

from poseidon.schedule.adaptive_one_f_one_b import AdaptiveOneFOneB
from poseidon.schedule.dualpipev import DualPipeV
from poseidon.schedule.eager_one_f_one_b import EagerOneFOneB
from poseidon.schedule.gpipe import GPipe
from poseidon.schedule.interleaved_one_f_one_b import InterleavedOneFOneB
from poseidon.schedule.one_f_one_b import OneFOneB
from poseidon.schedule.schedule import Schedule
from poseidon.schedule.split_schedule import SplitSchedule
from poseidon.schedule.zbv import ZBV
from poseidon.schedule.zero_bubble import ZeroBubbleH1, ZeroBubbleH2

SCHEDULES: dict[str, Schedule] = {
    schedule.name: schedule
    for schedule in (OneFOneB(), EagerOneFOneB(), GPipe(), InterleavedOneFOneB(), AdaptiveOneFOneB())
}
"""Every schedule that can be searched, under its name, in the order in which help texts list them."""

SPLIT_SCHEDULES: dict[str, SplitSchedule] = {
    schedule.name: schedule for schedule in (ZeroBubbleH1(), ZeroBubbleH2(), ZBV(), DualPipeV())
}
"""Schedules with split backwards: for `simulate` and for orders; the search's bounds know whole backwards only."""


def get_schedule(name: str) -> Schedule:
    """The searchable schedule called `name`; ValueError with the reason, the nearest name, or all of them."""
    if name in SCHEDULES:
        return SCHEDULES[name]
    if name in SPLIT_SCHEDULES:
        raise ValueError(
            f"{name} splits its backwards, which the search cannot do: a stages file with it can be simulated "
            f"(poseidon simulate); the search accepts {', '.join(SCHEDULES)}"
        )
    raise _unknown(name, list(SCHEDULES))


def find_schedule(name: str) -> Schedule:
    """The schedule called `name`, searchable or not; capitals and hyphens are accepted (``ZB-H1`` is ``zb_h1``).

    ValueError with the nearest name, or all of them, if there is none.
    """
    schedules: dict[str, Schedule] = {**SCHEDULES, **SPLIT_SCHEDULES}
    plain = name.lower().replace("-", "_")
    if plain in schedules:
        return schedules[plain]
    raise _unknown(name, list(schedules))


def _unknown(name: str, known: list[str]) -> ValueError:
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known schedules: {', '.join(known)}"
    return ValueError(f"unknown schedule {name!r}; {hint}")
