"""Flags that a plan's costs do not count: which are refused, which pass with a note."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, cast

from poseidon.errors import InputError, Mistake
from poseidon.launch.arguments import Arguments
from poseidon.launch.flag_table import DATA, data_rows, framework_flags

Verdict = Literal["never", "unless-accepted", "note"]


@dataclass(frozen=True)
class Unmodelled:
    """One rule: a flag, when it matters, what then happens and why."""

    flag: str
    when: str
    verdict: Verdict
    reason: str

    def applies_to(self, arguments: Arguments) -> bool:
        """Whether the flag is there with a value that matters."""
        if not arguments.has(self.flag):
            return False
        word, _, rest = self.when.partition(" ")
        value = arguments.text(self.flag) or ""
        match word:
            case "above":
                return (arguments.count(self.flag) or 0) > int(rest)
            case "is":
                return value in rest.split(",")
            case "not":
                return value not in rest.split(",")
        return True


def rules() -> tuple[Unmodelled, ...]:
    """All of them, in the order of their file."""
    return tuple(
        Unmodelled(row["flag"], row["when"], cast(Verdict, row["verdict"]), row["reason"])
        for row in data_rows(DATA / "unmodelled_flags.tsv")
    )


def notes_on_unmodelled(arguments: Arguments, accepted: Collection[str]) -> tuple[str, ...]:
    """What passes although a plan does not count it; InputError with everything that does not pass."""
    found = [rule for rule in rules() if rule.applies_to(arguments)]
    mistakes = [*_unknown_acceptances(accepted), *_refusals(found, accepted)]
    if mistakes:
        raise InputError(mistakes)
    return tuple(f"{rule.flag}: {rule.reason}" for rule in found)


def _refusals(found: list[Unmodelled], accepted: Collection[str]) -> Iterator[Mistake]:
    for rule in found:
        if rule.verdict == "never":
            yield Mistake(rule.flag, "", rule.reason)
        elif rule.verdict == "unless-accepted" and rule.flag not in accepted:
            yield Mistake(rule.flag, "", f"{rule.reason}; to plan as if it were not there add --accept {rule.flag}")


def _unknown_acceptances(accepted: Collection[str]) -> Iterator[Mistake]:
    acceptable = {rule.flag for rule in rules() if rule.verdict == "unless-accepted"}
    never = {rule.flag for rule in rules() if rule.verdict == "never"}
    for flag in accepted:
        if flag not in acceptable:
            reason = "a plan can't be run with it" if flag in never else "nothing is refused because of it"
            yield Mistake("--accept", "", f"{flag[:60]!r}: {reason}")


def check_spelling(arguments: Arguments, decisive: Collection[str]) -> None:
    """Refuses what is nearly one of the `decisive` flags: neither Megatron-LM nor a plan would see it.

    That is the beginning of one (the frameworks accept no abbreviations), or one with underscores.
    """
    known = framework_flags()
    for item in arguments:
        if not item.name.startswith("--") or item.flag is not None:
            continue
        dashed = item.name.replace("_", "-")
        meant = next((name for name in sorted(decisive) if name.startswith(dashed) and len(dashed) > len("--xx")), None)
        if (meant is not None and dashed not in known) or dashed in decisive:
            message = f"is not a flag of the framework, which accepts no abbreviations; write {meant or dashed}"
            raise InputError(Mistake(item.name, "", message))
