"""Reads the rows of the studies `comparisons` and `scale`: who is how fast, how good, and why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from poseidon.output.numbers import percent
from poseidon.paper.study import Row, Tables

STUDY, SCALE = "comparisons", "scale"
POSEIDON, UNIFORM, PAPER, METIS, HEXISCALE = "exact-wide", "exact", "paper", "metis", "hexiscale"
RIVALS = (METIS, HEXISCALE)
WORDS = {
    "exact-wide": "Poseidon, TP per stage",
    "exact": "Poseidon, one TP",
    "paper": "the paper's search",
    "eq1": "Eq. 1, exact",
    "metis": "Metis",
    "hexiscale": "HexiScale",
    "given": "given",
}
"""What the page calls the policies."""
SLACK = 1 + 1e-9
"""Times that differ by less are the same: two ways to add up the same numbers."""
NOTHING = "-"

Entries = Mapping[str, Row]
"""The rows of one setting by policy."""


def entries_of(tables: Tables, setting: str) -> Entries:
    """The rows of a setting, by policy, in the order in which they were measured."""
    rows = [row for name in (STUDY, SCALE) for row in tables.get(name, ()) if row["setting"] == setting]
    return {row["entrant"]: row for row in rows}


def time_of(row: Row | None) -> float | None:
    """The iteration time (ms) of a row's plan; None without a plan that fits in memory."""
    return row["iteration_time_ms"] if row is not None and row["fits"] else None


def poseidon_of(entries: Entries) -> Row | None:
    """Poseidon's row: of its two spaces, one TP for all stages and TP per stage, that with the faster plan.

    The wider one holds the other, but a time limit may end its search before it has as good a plan.
    """
    rows = [entries[name] for name in (POSEIDON, UNIFORM) if name in entries]
    return min(
        (row for row in rows if time_of(row) is not None), key=lambda row: row["iteration_time_ms"], default=None
    )


def relative_throughput(entries: Entries, row: Row | None) -> float | None:
    """Throughput of a row's plan over Metis' (both under the DAG); None where one of them has no plan."""
    own, metis = time_of(row), time_of(entries.get(METIS))
    return None if own is None or metis is None else metis / own


def hit_limit(row: Row) -> bool:
    """Whether the time limit ended the search."""
    return bool(row["termination"] == "time limit")


def seconds_until(row: Row, time_ms: float) -> float | None:
    """Seconds until the search had a plan as fast as this; None where it never had."""
    curve = row["curve"] or ()
    points = (point["seconds"] for point in curve if point["iteration_time_ms"] <= time_ms * SLACK)
    return min(points, default=None)


def faster_than_poseidon(entries: Entries) -> list[str]:
    """A sentence for every policy whose plan is faster than Poseidon's, with why."""
    ours = poseidon_of(entries)
    if ours is None:
        return ["Poseidon has no plan"]
    sentences = []
    for name, row in entries.items():
        time_ms = time_of(row)
        if time_ms is not None and time_ms * SLACK < ours["iteration_time_ms"]:
            faster = percent(ours["iteration_time_ms"] / time_ms - 1)
            sentences.append(f"the plan of {WORDS[name]} is {faster} faster than Poseidon's: {_cause(entries, row)}")
    return sentences


def _cause(entries: Entries, theirs: Row) -> str:
    wide = entries.get(POSEIDON)
    if len({stage["dp"] for stage in theirs["stages"]}) > 1:
        return "its stages differ in DP, which no space of the exact search has"
    if wide is None or hit_limit(wide):
        return "the time limit ended the search with TP per stage, the space that has this plan"
    return "the exact search should have found it: please report this"


def joined(texts: Iterable[str]) -> str:
    """``a, b and c``."""
    parts = list(texts)
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def ratio_text(value: float | None) -> str:
    """``1.94x``."""
    return NOTHING if value is None else f"{value:.2f}x"


def seconds_text(row: Row | None) -> str:
    """Seconds of a search, and that the limit ended it where it did."""
    if row is None or row["search_s"] is None:
        return NOTHING
    return f"{row['search_s']:,.2f}{' (limit)' if hit_limit(row) else ''}"


def setting_label(setting: str) -> str:
    """``setting 3``, ``96 NPUs``."""
    scale = setting.removeprefix("setting6-")
    return f"{scale} NPUs" if scale != setting else f"setting {setting.removeprefix('setting')}"


def in_setting(setting: str) -> str:
    """``in setting 3``, ``at 96 NPUs``."""
    label = setting_label(setting)
    return f"{'in' if label.startswith('setting') else 'at'} {label}"


def possessive(name: str) -> str:
    """``Metis'``, ``Poseidon's``."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def comparison_remarks(tables: Tables, settings: Iterable[str]) -> tuple[str, ...]:
    """What a reader of a comparison has to know: limits, plans that do not fit, workers."""
    rows = [row for setting in settings for row in entries_of(tables, setting).values()]
    limits = {f"{row['time_limit_s']:g} s" for row in rows if hit_limit(row)}
    unfit = [_who(row) for row in rows if row["fits"] is False]
    without = [_who(row) for row in rows if row["plan"] is None]
    workers = max((row["workers"] for row in rows), default=1)
    remarks = (
        f"(limit): {joined(sorted(limits))} ended the search; its plan is the best until then." if limits else "",
        f"Not within memory: {joined(unfit)}." if unfit else "",
        f"No plan: {joined(without)}." if without else "",
        f"Poseidon's searches used {workers} processes, Metis' and HexiScale's one each." if workers > 1 else "",
    )
    return tuple(filter(None, remarks))


def rivals_remark(tables: Tables, settings: Iterable[str]) -> str:
    """Why the rivals are closer to the optimum here than in the paper, as far as rows can tell."""
    metis = {setting: entries_of(tables, setting).get(METIS) for setting in settings}
    memory = joined(
        f"{percent(row['fullest_memory_fraction'])} {in_setting(setting)}"
        for setting, row in metis.items()
        if row is not None and row["plan"] is not None
    )
    return (
        "Metis and HexiScale plan here with our profile, our batches and our memory model, so that their plans fit. "
        "The paper puts most of Metis' loss down to corrections of plans that do not fit; here the fullest stage of "
        f"Metis' plan takes {memory or 'no part'} of its memory."
    )


def _who(row: Row) -> str:
    return f"{WORDS[row['entrant']]} {in_setting(row['setting'])}"
