"""Table 1: the plans of setting 2, the paper's own among them."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.output.markdown import MarkdownTable
from poseidon.output.numbers import percent
from poseidon.paper.compared import NOTHING, POSEIDON, SLACK, UNIFORM, WORDS, entries_of, joined, possessive, time_of
from poseidon.paper.compared import STUDY as COMPARISONS
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.study import Row, Tables

PRINTED = "paper-plans"
SETTING = "setting2"


def _best_printed(tables: Tables) -> dict[str, Row]:
    """Each of the paper's plans with its best micro-batch size: the fastest that fits, else the fastest."""
    best: dict[str, Row] = {}
    for row in tables[PRINTED]:
        known = best.get(row["system"])
        if known is None or _rank(row) < _rank(known):
            best[row["system"]] = row
    return best


def _rank(row: Row) -> tuple[bool, float]:
    time_ms = row["iteration_time_ms"]
    return (not row["fits"], float("inf") if time_ms is None else time_ms)


def _optimum_ms(tables: Tables) -> float | None:
    """The fastest plan of the setting, of either space of the exact search."""
    entries = entries_of(tables, SETTING)
    return min((time_ms for name in (UNIFORM, POSEIDON) if (time_ms := time_of(entries.get(name)))), default=None)


def _found(tables: Tables) -> str:
    optimum, entries = _optimum_ms(tables), entries_of(tables, SETTING)
    ours = entries[UNIFORM]
    texts = []
    for system, row in _best_printed(tables).items():
        if row["iteration_time_ms"] is None or optimum is None:
            texts.append(f"{possessive(system)} can't be timed here ({row['reason']})")
            continue
        fits = "" if row["fits"] else ", not within memory"
        texts.append(
            f"{possessive(system)} {row['iteration_time_ms']:,.1f} ms "
            f"(+{percent(row['iteration_time_ms'] / optimum - 1)}{fits})"
        )
    own = (
        "no plan" if ours["plan"] is None else f"{ours['plan']}, {ours['iteration_time_ms']:,.1f} ms, {ours['status']}"
    )
    return f"Poseidon's plan: {own}. The plans that the paper prints, timed under our profile: {joined(texts)}."


def _table(tables: Tables) -> MarkdownTable:
    header = ("plan of", "ms", "slower", "M x micro-batch", "bubble", "memory", "fits", "stages as (DP,TP,type,layers)")
    return MarkdownTable(header, tuple(_lines(tables)), frozenset({1, 2, 3, 4, 5}))


def _lines(tables: Tables) -> Iterator[tuple[str, ...]]:
    optimum = _optimum_ms(tables)
    for name, row in entries_of(tables, SETTING).items():
        yield _cells(f"{WORDS[name]} (here)", row, optimum)
    for system, row in _best_printed(tables).items():
        yield _cells(f"{system} (paper, Table 1)", row, optimum)


def _cells(name: str, row: Row, optimum: float | None) -> tuple[str, ...]:
    time_ms = row["iteration_time_ms"]
    if time_ms is None:
        return (name, *[NOTHING] * 6, row["reason"])
    slower = (
        NOTHING if optimum is None else percent(max(0.0, time_ms / optimum - 1) if time_ms > optimum * SLACK else 0.0)
    )
    sizes = {stage["micro_batch_size"] for stage in row["stages"]}
    return (
        name,
        f"{time_ms:,.1f}",
        slower,
        f"{row['num_micro_batches']} x {sizes.pop() if len(sizes) == 1 else 'mixed'}",
        percent(row["bubble_fraction"]),
        percent(row["fullest_memory_fraction"]),
        "yes" if row["fits"] else "**no**",
        row["plan"],
    )


def _remarks(tables: Tables) -> tuple[str, ...]:
    remarks = [
        "The paper prints no batch and no micro-batch size with its plans. Here each gets the setting's global "
        "batch and the size that makes it fastest."
    ]
    timed = {system: row for system, row in _best_printed(tables).items() if row["bubble_fraction"] is not None}
    ours = entries_of(tables, SETTING)[UNIFORM]
    if timed and ours["plan"] is not None:
        bubbles = joined(
            f"{percent(row['bubble_fraction'])} in {possessive(system)} ({row['pp']} stages)"
            for system, row in timed.items()
        )
        remarks.append(
            f"Devices wait for {bubbles} of the time, in our plan ({ours['pp']} stages) for "
            f"{percent(ours['bubble_fraction'])}: a longer pipeline takes longer to fill, and 2 or 3 layers a stage "
            "can't be balanced well. Under the paper's own profile, which is not printed, that may be otherwise."
        )
    return tuple(remarks)


def _data(tables: Tables) -> list[Row]:
    kept = ("iteration_time_ms", "static_ms", "num_micro_batches", "fits", "fullest_memory_fraction", "status", "plan")
    entries = entries_of(tables, SETTING).values()
    return [
        *({"plan_of": row["entrant"], "is_printed": False} | {name: row[name] for name in kept} for row in entries),
        *(
            {"plan_of": row["system"], "is_printed": True} | {name: row[name] for name in kept}
            for row in _best_printed(tables).values()
        ),
    ]


EXHIBIT = Exhibit(
    name="table-1",
    title="The plans of setting 2, and the paper's own timed here",
    studies=(COMPARISONS, PRINTED),
    reported="Poseidon PP 16 (DP 2, TP 1), Metis PP 14 (DP 2, TP 1 and 2), HexiScale PP 10 (DP 1, TP 2 and 4); "
    "Poseidon is 1.05x as fast as "
    "Metis, HexiScale 0.86x.",
    found=_found,
    tables=lambda tables: (_table(tables),),
    remarks=_remarks,
    data=_data,
)
