"""The option type for schedules that the search may choose from."""

from __future__ import annotations

from typing import Any

import click

from poseidon.schedule.registry import SCHEDULES, SPLIT_SCHEDULES, get_schedule


class ScheduleChoice(click.Choice[str]):
    """A searchable schedule; those that are only simulated are refused with the reason."""

    def __init__(self) -> None:
        """Offers the searchable schedules."""
        super().__init__(tuple(SCHEDULES))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if it can be searched."""
        if value in SPLIT_SCHEDULES:
            try:
                get_schedule(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)
