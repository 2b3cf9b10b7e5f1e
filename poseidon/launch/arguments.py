"""A command line as flags with their values; every word stays as it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poseidon.errors import InputError, Mistake
from poseidon.launch.flag_table import Flag, FlagTable

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
"""What argparse takes for a value although it begins with a dash."""


@dataclass(frozen=True)
class Argument:
    """A flag with its values. Words that belong to no flag have an empty name."""

    name: str
    """The first of the flag's names; of a flag that is not known, the one that was written."""
    words: tuple[str, ...]
    """As written: ``--k v`` are two, ``--k=v`` is one."""
    values: tuple[str, ...] = ()
    flag: Flag | None = None

    @property
    def takes_more(self) -> bool:
        """Whether a word that followed would be another of its values."""
        return bool(self.name) and "=" not in self.words[0] and _most(self.flag) is None

    def with_value(self, value: str) -> Argument:
        """The same flag, spelt as before, with another value."""
        written, equals, _ = self.words[0].partition("=")
        words = (f"{written}={value}",) if equals else (written, value)
        return Argument(self.name, words, (value,), self.flag)


@dataclass(frozen=True)
class Arguments:
    """All of them, in order. Where a flag is repeated the last one counts, as in argparse."""

    items: tuple[Argument, ...]

    def __iter__(self) -> Iterator[Argument]:
        """In the order of the command line."""
        return iter(self.items)

    @property
    def words(self) -> tuple[str, ...]:
        """The command line."""
        return tuple(word for item in self.items for word in item.words)

    def last(self, name: str) -> Argument | None:
        """The occurrence that counts."""
        return next((item for item in reversed(self.items) if item.name == name), None)

    def has(self, name: str) -> bool:
        """Whether a flag is given."""
        return self.last(name) is not None

    def text(self, name: str) -> str | None:
        """The value of a flag with one; None where it is not given."""
        found = self.last(name)
        return found.values[0] if found is not None and found.values else None

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a flag; none where it is not given."""
        found = self.last(name)
        return () if found is None else found.values

    def count(self, name: str) -> int | None:
        """The value of a flag as a whole number that is not negative; InputError where it is something else."""
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch(r"\+?[0-9]{1,12}", text):
            raise InputError(Mistake(name, "", f"{text[:40]!r} is not a whole number"))
        return int(text)


def parsed(words: Sequence[str], table: FlagTable, *, stop_at_word: bool = False) -> Arguments:
    """The flags of a command line; InputError where a flag lacks its values.

    A flag that `table` doesn't have takes all words up to the next flag. `stop_at_word`: ends before the first word
    that belongs to no flag, as a launcher does at its script.
    """
    items: list[Argument] = []
    index = 0
    while index < len(words):
        if is_flag(words[index]):
            item = _flag(words, index, table)
        elif stop_at_word:
            break
        else:
            item = Argument("", (words[index],))
        items.append(item)
        index += len(item.words)
    return Arguments(tuple(items))


def is_flag(word: str) -> bool:
    """Whether argparse takes a word for a flag."""
    return len(word) > 1 and word.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(word)


def _flag(words: Sequence[str], index: int, table: FlagTable) -> Argument:
    written, equals, inline = words[index].partition("=")
    flag = table.get(written)
    name = written if flag is None else flag.name
    if equals:
        return Argument(name, (words[index],), (inline,), flag)
    following: list[str] = []
    wanted = _most(flag)
    for word in words[index + 1 :]:
        if len(following) == wanted or is_flag(word):
            break
        following.append(word)
    if flag is not None and len(following) < _fewest(flag):
        raise InputError(Mistake(written, "", f"needs {_wanted(flag)}"))
    return Argument(name, (written, *following), tuple(following), flag)


def _most(flag: Flag | None) -> int | None:
    return None if flag is None or not flag.num_values.isdigit() else int(flag.num_values)


def _fewest(flag: Flag) -> int:
    return int(flag.num_values) if flag.num_values.isdigit() else {"+": 1}.get(flag.num_values, 0)


def _wanted(flag: Flag) -> str:
    return "a value" if flag.num_values in ("1", "+") else f"{flag.num_values} values"
