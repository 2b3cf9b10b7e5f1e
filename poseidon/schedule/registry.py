"""The known schedules by name."""

from __future__ import annotations

import difflib

from poseidon.schedule.adaptive_one_f_one_b import AdaptiveOneFOneB
from poseidon.schedule.eager_one_f_one_b import EagerOneFOneB
from poseidon.schedule.gpipe import GPipe
from poseidon.schedule.interleaved_one_f_one_b import InterleavedOneFOneB
from poseidon.schedule.one_f_one_b import OneFOneB
from poseidon.schedule.schedule import Schedule

SCHEDULES: dict[str, Schedule] = {
    schedule.name: schedule
    for schedule in (OneFOneB(), EagerOneFOneB(), GPipe(), InterleavedOneFOneB(), AdaptiveOneFOneB())
}
"""Every schedule under its name, in the order in which help texts list them."""


def get_schedule(name: str) -> Schedule:
    """The schedule called `name`; ValueError with the nearest name, or all of them, if there is none."""
    if name in SCHEDULES:
        return SCHEDULES[name]
    nearest = difflib.get_close_matches(name, SCHEDULES, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known schedules: {', '.join(SCHEDULES)}"
    raise ValueError(f"unknown schedule {name!r}; {hint}")
