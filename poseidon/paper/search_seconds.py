"""Exhibits on search time: seconds beside the size of the space that they were spent on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.compared import (
    HEXISCALE,
    METIS,
    NOTHING,
    PAPER,
    POSEIDON,
    RIVALS,
    UNIFORM,
    WORDS,
    Entries,
    entries_of,
    hit_limit,
    in_setting,
    joined,
    seconds_text,
    seconds_until,
    setting_label,
    time_of,
)
from poseidon.paper.drawing import grouped_bars
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPACES = "spaces"
SCOPE_OF = {UNIFORM: "uniform", "eq1": "uniform", PAPER: "uniform", POSEIDON: "per-stage"}
"""Whose space is counted, and which scope of TP degrees it has; the others' candidates were counted by their search."""
SYSTEMS = {PAPER: "Poseidon", METIS: "Metis", HEXISCALE: "HexiScale"}
"""What the paper calls the policies that it gives seconds of."""
COMPARABLE = 100
"""A space of less than a hundredth of another one's size is not comparable to it."""
DRAWN = (POSEIDON, UNIFORM, PAPER, METIS, HEXISCALE)
Seconds = dict[str, float]
"""The paper's seconds by policy."""


@dataclass(frozen=True)
class SearchSeconds:
    """Some settings, with the paper's seconds where it says whose they are."""

    reported: dict[str, Seconds]

    def found(self, tables: Tables) -> str:
        """Seconds of everybody in every setting, and who is faster than the exact search, on what."""
        texts = []
        for setting in self.reported:
            entries = entries_of(tables, setting)
            seconds = [seconds_text(entries.get(name)) for name in (UNIFORM, POSEIDON, METIS, HEXISCALE)]
            texts.append(f"{setting_label(setting)} {' / '.join(seconds)}")
        faster = list(self._faster(tables))
        alike = joined(text for text, is_comparable in faster if is_comparable)
        others = joined(text for text, is_comparable in faster if not is_comparable)
        return (
            f"Search seconds of Poseidon with one TP / with TP per stage / Metis / HexiScale: {'; '.join(texts)}. "
            + (
                f"Faster than Poseidon with one TP: {alike}. "
                if alike
                else "No search of a comparable space is faster. "
            )
            + (f"Faster on a much smaller space than one TP's: {others}." if others else "No other is faster, either.")
        )

    def _faster(self, tables: Tables) -> Iterator[tuple[str, bool]]:
        """Searches that took less time than that of one TP, and whether their space is comparable to its own."""
        for setting in self.reported:
            entries = entries_of(tables, setting)
            own = entries.get(UNIFORM)
            for name, row in entries.items():
                if own is None or row["search_s"] >= own["search_s"]:
                    continue
                space, own_space = space_of(tables, setting, row), space_of(tables, setting, own)
                is_comparable = COMPARABLE * space.count >= own_space.count
                yield f"{WORDS[name]} {in_setting(setting)} ({space.text} to {own_space.text})", is_comparable

    def table(self, tables: Tables) -> MarkdownTable:
        """A row for each setting and policy."""
        header = ("setting", "policy", "search s", "paper s", "space", "timed", "as good as Metis", "as HexiScale")
        rows = [
            self._cells(tables, setting, entries, name)
            for setting in self.reported
            for entries in [entries_of(tables, setting)]
            for name in entries
        ]
        return MarkdownTable(header, tuple(rows), frozenset({2, 3, 4, 5, 6, 7}))

    def _cells(self, tables: Tables, setting: str, entries: Entries, name: str) -> tuple[str, ...]:
        row = entries[name]
        reported = self.reported[setting].get(name)
        return (
            setting_label(setting),
            WORDS[name],
            seconds_text(row),
            NOTHING if reported is None else f"{reported:,.2f}",
            space_of(tables, setting, row).text,
            f"{row['simulations']:,}" if row["simulations"] is not None else NOTHING,
            *(_until_text(entries, name, rival) for rival in RIVALS),
        )

    def data(self, tables: Tables) -> list[Row]:
        """The numbers of the table."""
        return list(self._data(tables))

    def _data(self, tables: Tables) -> Iterator[Row]:
        for setting, reported in self.reported.items():
            entries = entries_of(tables, setting)
            for name, row in entries.items():
                space = space_of(tables, setting, row)
                yield {
                    "setting": setting,
                    "entrant": name,
                    "search_s": row["search_s"],
                    "stopped_by_limit": hit_limit(row),
                    "reported_s": reported.get(name),
                    "space": str(space.count),
                    "space_is_least": space.is_least,
                    "space_of": space.what,
                    "simulations": row["simulations"],
                    "as_good_as_metis_s": _until(entries, name, METIS),
                    "as_good_as_hexiscale_s": _until(entries, name, HEXISCALE),
                }

    def draw(self, axes: Axes, tables: Tables) -> None:
        """Bars on a logarithmic scale; hollow ones are the paper's, where it says whose they are."""
        settings = list(self.reported)
        series: dict[str, Sequence[float | None]] = {
            WORDS[name]: [_seconds(entries_of(tables, setting).get(name)) for setting in settings] for name in DRAWN
        }
        printed = {
            f"paper: {system}": [self.reported[setting].get(name) for setting in settings]
            for name, system in SYSTEMS.items()
            if any(name in reported for reported in self.reported.values())
        }
        hollow = {f"paper: {system}": WORDS[name] for name, system in SYSTEMS.items()}
        grouped_bars(axes, [setting_label(s) for s in settings], {**series, **printed}, hollow=hollow)
        axes.set_yscale("log")
        axes.set_ylim(bottom=axes.dataLim.minposy / 2)
        axes.set_ylabel("search (s)")


@dataclass(frozen=True)
class Space:
    """How many configurations a policy's search covers; `is_least`: there are more, which were not counted."""

    count: int
    what: str
    is_least: bool = False

    @property
    def text(self) -> str:
        """``1.01e9 configurations``, ``2,310 candidates``."""
        count = f"{self.count:,}" if self.count < 1_000_000 else scientific(self.count)
        return f"{'more than ' if self.is_least else ''}{count} {self.what}"


def space_of(tables: Tables, setting: str, row: Row) -> Space:
    """The space of a policy: counted for those of the exact search, the candidates of the others.

    A space that was not counted to its end has at least what was, and what the space within it has.
    """
    scope = SCOPE_OF.get(row["entrant"])
    if scope is None:
        return Space(row["outer_choices"], "candidates")
    counted = {count["scope"]: count for count in tables[SPACES] if count["setting"] == setting}
    own = counted.get(scope)
    if own is not None and own["is_complete"]:
        return Space(int(own["num_configurations"]), "configurations")
    least = max((int(count["num_configurations"]) for count in counted.values()), default=0)
    return Space(least, "configurations", is_least=True)


def scientific(count: int) -> str:
    """Three digits of a count of any size."""
    digits = str(count)
    return f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def _seconds(row: Row | None) -> float | None:
    return None if row is None else row["search_s"]


def _until(entries: Entries, name: str, rival: str) -> float | None:
    """Seconds until a policy had a plan as fast as a rival's last one."""
    time_ms = time_of(entries.get(rival))
    return None if time_ms is None or name == rival else seconds_until(entries[name], time_ms)


def _until_text(entries: Entries, name: str, rival: str) -> str:
    seconds = _until(entries, name, rival)
    if seconds is None:
        return NOTHING if name == rival or time_of(entries.get(rival)) is None else "never"
    return f"{seconds:,.2f} s"
