"""A script's arguments with a plan's flags in place of those that contradict it; everything else as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from poseidon.launch.arguments import Argument, Arguments
from poseidon.launch.plan_flags import Removal

Kind = Literal["removed", "changed", "added"]


@dataclass(frozen=True)
class Change:
    """What became of one flag. `before` and `after` are as written; one of them is empty where it was not there."""

    kind: Kind
    flag: str
    before: str
    after: str
    reason: str


@dataclass(frozen=True)
class Rewritten:
    """The new arguments, what changed, and how many flags stay as they were."""

    words: tuple[str, ...]
    changes: tuple[Change, ...]
    num_kept: int


def rewritten(arguments: Arguments, flags: Sequence[tuple[str, ...]], removals: Sequence[Removal]) -> Rewritten:
    """Sets the plan's `flags` (each a name, with a value or alone) and takes out what `removals` name.

    A flag that is there keeps its place and its spelling, and what it says already stays as it is; of a repeated one
    only the last stays, which is the one that counts. New flags come last. A word that belongs to no flag stays so.
    """
    wanted = {flag[0]: flag[1:] for flag in flags}
    reasons = {removal.flag: removal.reason for removal in removals if removal.flag not in wanted}
    changes: list[Change] = []
    kept: list[Argument] = []
    num_kept = 0
    for item in arguments:
        result = _item(item, arguments, wanted, reasons)
        if isinstance(result, Change):
            changes.append(result)
        else:
            kept.append(result)
            if result is item:
                num_kept += bool(item.name)
            else:
                changes.append(Change("changed", item.name, _shown(item), _shown(result), "the plan's value"))
    missing = [flag for flag in flags if not arguments.has(flag[0])]
    changes += [Change("added", flag[0], "", " ".join(flag), "the plan's") for flag in missing]
    words = tuple(word for item in _apart(kept) for word in item.words)
    return Rewritten((*words, *(word for flag in missing for word in flag)), tuple(changes), num_kept)


def _item(
    item: Argument, arguments: Arguments, wanted: Mapping[str, tuple[str, ...]], reasons: Mapping[str, str]
) -> Argument | Change:
    """What stands in an argument's place, or that it is removed."""
    if item.name in reasons:
        return Change("removed", item.name, _shown(item), "", reasons[item.name])
    values = wanted.get(item.name)
    if not values:
        return item  # not the plan's, or a switch that is on already
    if item is not arguments.last(item.name):
        return Change("removed", item.name, _shown(item), "", "repeated: the last one counts")
    return item if _same(item.values, values) else item.with_value(values[0])


def _apart(kept: list[Argument]) -> list[Argument]:
    """The same arguments, but that no flag takes a word that came after one that is gone: such words come first."""
    end = max((i for i in range(1, len(kept)) if not kept[i].name and kept[i - 1].takes_more), default=-1) + 1
    while 0 < end < len(kept) and not kept[end].name:
        end += 1
    return sorted(kept[:end], key=lambda item: bool(item.name)) + kept[end:]


def _same(written: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Numbers are the same however they are written (``08``, ``+8``)."""
    if written == wanted:
        return True
    texts = (written[0] if written else "", wanted[0])
    return all(text.lstrip("+").isdigit() for text in texts) and int(texts[0]) == int(texts[1])


def _shown(item: Argument) -> str:
    return " ".join(item.words)
