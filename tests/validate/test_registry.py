from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import poseidon.validate
from poseidon.validate.registry import comparisons

MODULE = '''
from __future__ import annotations
from poseidon.validate.comparison import Comparison, Row
from poseidon.validate.simumax import simumax_memory

def added() -> Comparison:
    """One row."""
    return Comparison("by another name", "Added", "here", "printed", (Row("a", 1.0, 1.0, "ms"),), (), "one")

def needs_more(rows: int) -> Comparison:
    raise AssertionError

def asks(*, rows: int) -> Comparison:
    raise AssertionError

def not_one() -> int:
    return 1
'''


@pytest.fixture
def add_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules count as modules of the package."""
    monkeypatch.setattr(poseidon.validate, "__path__", [*poseidon.validate.__path__, str(tmp_path)])
    yield tmp_path
    for name in ("later", "broken"):
        sys.modules.pop(f"poseidon.validate.{name}", None)


def test_a_module_that_is_added_plugs_in_without_edits(add_module: Path) -> None:
    (add_module / "later.py").write_text(MODULE)

    entries, _ = comparisons()

    names = [entry.name for entry in entries]
    assert names == sorted(names)
    assert names.count("simumax-memory") == 1
    assert {"needs-more", "asks", "not-one"}.isdisjoint(names)
    (entry,) = (entry for entry in entries if entry.name == "added")
    assert (entry.run().name, entry.run().summary) == ("added", "one")


def test_a_module_without_a_comparison_is_not_loaded(add_module: Path) -> None:
    (add_module / "broken.py").write_text("import a_package_that_nobody_has\n")

    assert "broken" not in [item.module for item in comparisons()[1]]


def test_a_module_that_needs_a_missing_package_is_left_out_with_the_reason(add_module: Path) -> None:
    (add_module / "broken.py").write_text("import a_package_that_nobody_has\n\ndef lost() -> Comparison: ...\n")

    entries, absent = comparisons()

    assert "ascend" in [entry.name for entry in entries]
    assert ("broken", "needs a_package_that_nobody_has, which is not installed") in [
        (item.module, item.reason) for item in absent
    ]


def test_a_module_that_asks_for_something_of_ours_that_is_not_there_is_an_error(add_module: Path) -> None:
    (add_module / "broken.py").write_text("import poseidon.no_such_room\n\ndef lost() -> Comparison: ...\n")

    with pytest.raises(ModuleNotFoundError):
        comparisons()
