"""Exhibits on throughput: every policy's plan relative to Metis', all timed under the same DAG model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poseidon.output.markdown import MarkdownTable
from poseidon.output.numbers import percent
from poseidon.paper.compared import (
    HEXISCALE,
    METIS,
    NOTHING,
    POSEIDON,
    UNIFORM,
    WORDS,
    Entries,
    comparison_remarks,
    entries_of,
    faster_than_poseidon,
    hit_limit,
    in_setting,
    joined,
    poseidon_of,
    ratio_text,
    relative_throughput,
    rivals_remark,
    setting_label,
)
from poseidon.paper.drawing import grouped_bars
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = (POSEIDON, UNIFORM, METIS, HEXISCALE)
PRINTED = {"paper: Poseidon": WORDS[POSEIDON], "paper: HexiScale": WORDS[HEXISCALE]}
"""Series of the paper's numbers, and those that they belong to."""


@dataclass(frozen=True)
class Reported:
    """What the paper reports of a setting: throughput over Metis' of Poseidon and of HexiScale."""

    poseidon: float
    hexiscale: float

    def of(self, entrant: str) -> float | None:
        """The paper's number for a policy of ours; None where it has no such policy."""
        return {POSEIDON: self.poseidon, METIS: 1.0, HEXISCALE: self.hexiscale}.get(entrant)


@dataclass(frozen=True)
class Throughput:
    """Some settings, with the paper's numbers for each."""

    reported: dict[str, Reported]

    def found(self, tables: Tables) -> str:
        """Poseidon and HexiScale over Metis in every setting, and whether any plan is faster than Poseidon's."""
        texts = []
        for setting in self.reported:
            entries = entries_of(tables, setting)
            rows = (poseidon_of(entries), entries.get(HEXISCALE))
            poseidon, hexiscale = (ratio_text(relative_throughput(entries, row)) for row in rows)
            texts.append(f"{poseidon} and {hexiscale} {in_setting(setting)}")
        return f"Poseidon and HexiScale over Metis: {joined(texts)}. {self.verdict(tables)}"

    def verdict(self, tables: Tables) -> str:
        """Whether Poseidon's plan is at least as fast as every other, and where not, why."""
        sentences = [
            f"{in_setting(setting)} {sentence}"
            for setting in self.reported
            for sentence in faster_than_poseidon(entries_of(tables, setting))
        ]
        return f"But {joined(sentences)}." if sentences else "No policy has a faster plan than Poseidon."

    def remarks(self, tables: Tables) -> tuple[str, ...]:
        """What a reader has to know."""
        return (rivals_remark(tables, self.reported), *comparison_remarks(tables, self.reported))

    def table(self, tables: Tables) -> MarkdownTable:
        """A row for each setting and policy."""
        header = ("setting", "policy", "ms", "tokens/s", "over Metis", "paper", "status", "DPxTPxPP", "memory", "fits")
        rows = [
            self._cells(setting, entries, name)
            for setting in self.reported
            for entries in [entries_of(tables, setting)]
            for name in entries
        ]
        return MarkdownTable(header, tuple(rows), frozenset({2, 3, 4, 5, 8}))

    def _cells(self, setting: str, entries: Entries, name: str) -> tuple[str, ...]:
        row, reported = entries[name], self.reported[setting].of(name)
        head = (setting_label(setting), WORDS[name])
        paper = NOTHING if reported is None else ratio_text(reported)
        status = f"{row['status']}, limit" if hit_limit(row) else row["status"]
        if row["iteration_time_ms"] is None:
            return (*head, NOTHING, NOTHING, NOTHING, paper, status, row["reason"] or NOTHING, NOTHING, NOTHING)
        return (
            *head,
            f"{row['iteration_time_ms']:,.1f}",
            f"{row['tokens_per_second']:,.0f}",
            ratio_text(relative_throughput(entries, row)),
            paper,
            status,
            degrees_text(row),
            percent(row["fullest_memory_fraction"]),
            "yes" if row["fits"] else "**no**",
        )

    def data(self, tables: Tables) -> list[Row]:
        """The numbers of the table."""
        return list(self._data(tables))

    def _data(self, tables: Tables) -> Iterator[Row]:
        kept = ("entrant", "status", "iteration_time_ms", "tokens_per_second", "fits", "fullest_memory_fraction")
        for setting, reported in self.reported.items():
            entries = entries_of(tables, setting)
            for name, row in entries.items():
                yield {
                    "setting": setting,
                    **{key: row[key] for key in kept},
                    "throughput_over_metis": relative_throughput(entries, row),
                    "reported_over_metis": reported.of(name),
                    "plan": row["plan"],
                }

    def draw(self, axes: Axes, tables: Tables) -> None:
        """Bars for each setting; hollow ones are the paper's."""
        settings = list(self.reported)
        series: dict[str, Sequence[float | None]] = {
            WORDS[name]: [_ratio(tables, setting, name) for setting in settings] for name in DRAWN
        }
        hollow = {
            name: [self.reported[setting].of(entrant) for setting in settings]
            for name, entrant in zip(PRINTED, (POSEIDON, HEXISCALE), strict=True)
        }
        labels = [setting_label(setting) for setting in settings]
        grouped_bars(axes, labels, {**series, **hollow}, hollow=PRINTED, value_format=".2f")
        axes.set_ylabel("throughput over Metis")
        axes.set_ylim(0, 1.12 * axes.dataLim.y1)


def _ratio(tables: Tables, setting: str, name: str) -> float | None:
    entries = entries_of(tables, setting)
    return relative_throughput(entries, entries.get(name))


def degrees_text(row: Row) -> str:
    """DP x TP x PP."""
    degrees = [{stage[key] for stage in row["stages"]} for key in ("dp", "tp")]
    shown = [str(found.pop()) if len(found) == 1 else "mixed" for found in degrees]
    return f"{shown[0]}x{shown[1]}x{row['pp']}"
