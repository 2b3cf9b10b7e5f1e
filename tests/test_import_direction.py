from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    "errors",
    "whole_file",
    "inputs",
    "profile",
    "schedule",
    "cost",
    "simulate",
    "search",
    "plan",
    "output",
    "rival_planner",
    "planner",
    "report",
    "launch",
    "sweep",
    "calibrate",
    "validate",
    "compare",
    "paper",
    "explain",
    "replan",
    "cli",
)
"""From left to right: a room imports only from itself and from rooms before it."""


@functools.cache
def imported_modules(path: Path) -> tuple[str, ...]:
    """The modules that a Python or Cython file names in an import, wherever it stands."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        for match in re.finditer(r"^\s*(?:from\s+([\w.]+)\s+c?import|c?import\s+([\w.]+))", text, re.MULTILINE):
            yield match[1] or match[2]
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "poseidon" and len(parts) > 1 and parts[1] in ROOMS else None


def sources() -> list[Path]:
    package = [*(ROOT / "poseidon").rglob("*.py"), *(ROOT / "poseidon").rglob("*.pyi")]
    return sorted([*package, *(ROOT / "ext").rglob("*.pyx"), *(ROOT / "ext").rglob("*.pxd")])


def own_room(path: Path) -> str | None:
    relative = path.relative_to(ROOT / "ext" if path.is_relative_to(ROOT / "ext") else ROOT)
    return room_of(".".join(relative.with_suffix("").parts))


def test_every_source_lies_in_a_known_room() -> None:
    lost = [path for path in sources() if own_room(path) is None and path.name != "__init__.py"]
    assert lost == []


def test_imports_go_from_right_to_left() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources()
        for module in imported_modules(path)
        if (own := own_room(path)) and (room := room_of(module)) and ROOMS.index(room) > ROOMS.index(own)
    ]
    assert wrong == []


def test_only_the_command_line_loads_ray_jobs() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in sources()
        if own_room(path) != "cli" and any(module.split(".")[0] == "ray_jobs" for module in imported_modules(path))
    ]
    assert wrong == []


def test_only_the_measuring_of_profiles_and_of_pipelines_names_torch() -> None:
    rooms = (ROOT / "poseidon" / "profile" / "measure", ROOT / "poseidon" / "validate" / "processes")
    wrong = [
        str(path.relative_to(ROOT))
        for path in sources()
        if not set(rooms) & set(path.parents)
        and any(module.split(".")[0] == "torch" for module in imported_modules(path))
    ]
    assert wrong == []


def test_the_checks_of_a_plan_share_nothing_with_the_search() -> None:
    """Only the words for a status are common; no bound, no evaluation, no enumeration."""
    checks = [*(ROOT / "poseidon" / "plan").glob("check*.py"), *(ROOT / "poseidon" / "plan").glob("re*.py")]
    assert len(checks) > 5
    wrong = [
        f"{path.name} imports {module}"
        for path in checks
        for module in imported_modules(path)
        if room_of(module) == "search" and not module.startswith("poseidon.search.result")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("poseidon", ("numpy", "pydantic", "rich", "ray", "torch", "click", "ray_jobs")),
        ("poseidon.sweep.conduct", ("ray", "torch", "click", "matplotlib", "ray_jobs")),
        ("poseidon.profile", ("torch", "rich", "click")),
        ("poseidon.profile.measure.merge", ("torch", "rich", "click")),
        ("poseidon.profile.measure.job", ("torch", "rich", "click")),
        (
            "poseidon.cli",
            (
                "numpy",
                "pydantic",
                "rich",
                "ray",
                "torch",
                "yaml",
                "ray_jobs",
                "pyarrow",
                "scipy",
                "matplotlib",
                "jinja2",
            ),
        ),
        ("poseidon.planner", ("ray", "torch", "rich", "click", "ray_jobs", "scipy", "matplotlib")),
    ],
)
def test_what_an_import_does_not_load(module: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in {forbidden!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"


def test_the_public_surface_is_complete() -> None:
    import poseidon

    assert set(poseidon.__all__) <= set(dir(poseidon))
    for name in poseidon.__all__:
        assert getattr(poseidon, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = poseidon.nothing
