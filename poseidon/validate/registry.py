"""Finds the comparisons: public functions in the modules of this package that return a `Comparison`."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import poseidon.validate
from poseidon.errors import MissingPackageError
from poseidon.validate.comparison import Comparison

PACKAGE = "poseidon.validate"


@dataclass(frozen=True)
class Entry:
    """A comparison that can be run; its name is that of its function, with dashes."""

    name: str
    function: Callable[[], Comparison]


@dataclass(frozen=True)
class Absent:
    """A module whose comparisons can't be run here, and why."""

    module: str
    reason: str


def comparisons() -> tuple[tuple[Entry, ...], tuple[Absent, ...]]:
    """All comparisons by name, and the modules that need a package which is not installed."""
    entries: list[Entry] = []
    absent: list[Absent] = []
    for module in sorted(item.name for item in pkgutil.iter_modules(poseidon.validate.__path__)):
        try:
            entries += _entries(module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("poseidon"):
                raise
            absent.append(Absent(module, f"needs {error.name}, which is not installed"))
        except MissingPackageError as error:
            absent.append(Absent(module, str(error)))
    return tuple(sorted(entries, key=lambda entry: entry.name)), tuple(absent)


def _entries(module: str) -> Iterator[Entry]:
    """The comparisons that a module defines (not those that it imports)."""
    source = import_module(f"{PACKAGE}.{module}")
    for name, function in inspect.getmembers(source, inspect.isfunction):
        if name.startswith("_") or function.__module__ != source.__name__:
            continue
        signature = inspect.signature(function)
        optional = all(
            item.default is not item.empty or item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
            for item in signature.parameters.values()
        )
        if signature.return_annotation in ("Comparison", Comparison) and optional:
            yield Entry(name.replace("_", "-"), function)
