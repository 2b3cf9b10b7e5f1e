"""Finds the comparisons: public functions in the modules of this package that return a `Comparison`."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import poseidon.validate
from poseidon.validate.comparison import Comparison

PACKAGE = "poseidon.validate"


@dataclass(frozen=True)
class Entry:
    """A comparison that can be run; its name is that of its function, with dashes."""

    name: str
    function: Callable[[], Comparison]

    def run(self) -> Comparison:
        """The comparison, under the name that it can be run by."""
        return replace(self.function(), name=self.name)


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
        names = list(_names(module))
        if not names:
            continue
        try:
            source = import_module(f"{PACKAGE}.{module}")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("poseidon"):
                raise
            absent.append(Absent(module, f"needs {error.name}, which is not installed"))
        else:
            entries += [Entry(name.replace("_", "-"), getattr(source, name)) for name in names]
    return tuple(sorted(entries, key=lambda entry: entry.name)), tuple(absent)


def _names(module: str) -> Iterator[str]:
    """The functions of a module that are comparisons, read from its source: most modules need not be loaded for it."""
    found = find_spec(f"{PACKAGE}.{module}")
    assert found is not None
    assert found.origin is not None
    for node in ast.parse(Path(found.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and _is_comparison(node):
            yield node.name


def _is_comparison(function: ast.FunctionDef) -> bool:
    """Whether a function returns a comparison and can be called without arguments."""
    arguments = function.args
    required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    required += sum(default is None for default in arguments.kw_defaults)
    return isinstance(function.returns, ast.Name) and function.returns.id == "Comparison" and required == 0
