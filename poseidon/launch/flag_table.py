"""The flags of the frameworks and of PyTorch's launchers: their names, and how many values each takes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Flag:
    """One flag. `num_values` is a number, ``+`` (one or more) or ``*`` (any number)."""

    names: tuple[str, ...]
    num_values: str
    default: str = ""
    owner: str = ""
    """Of MindSpeed's flags: "core" or "llm"."""

    @property
    def name(self) -> str:
        """What it is called here: the first of its names."""
        return self.names[0]


FlagTable = Mapping[str, Flag]
"""By each of their names."""


@functools.cache
def framework_flags() -> FlagTable:
    """Megatron-LM's flags, and those of MindSpeed and MindSpeed-LLM that are known here."""
    return _table(DATA / "mindspeed_flags.tsv") | _table(DATA / "megatron_flags.tsv")


@functools.cache
def launcher_flags() -> FlagTable:
    """The options of torchrun and torch.distributed.launch, with dashes."""
    return _table(DATA / "launcher_flags.tsv")


def _table(path: Path) -> dict[str, Flag]:
    flags: dict[str, Flag] = {}
    for row in data_rows(path):
        names = tuple(row["names"].split("|"))
        flag = Flag(names, row["num_values"], row.get("default", ""), row.get("owner", ""))
        flags |= dict.fromkeys(names, flag)
    return flags


def data_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of one of our tables: tabs between cells, the first row names them, ``#`` begins a comment line."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    header = lines[0].split("\t")
    for line in lines[1:]:
        yield dict(zip(header, line.split("\t"), strict=True))
