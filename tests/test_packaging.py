"""The project as a whole: what must agree between files, and what must not creep in."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
KERNELS = sorted((ROOT / "ext").rglob("*.pyx"))
LONG_FILES = {
    "ext/poseidon/search/_branch_and_bound.pyx": "tree and beam work on the same C state",
    "ext/poseidon/search/_chunked_search.pyx": "bounds and splits of a leaf work on the same C state",
    "ext/poseidon/search/_paper_search.pyx": "both prunings cut the same enumeration in its innermost loop",
}
"""Files of more than 400 lines, and why they are so long."""


def text_files():
    suffixes = {".json", ".jsonl", ".md", ".pxd", ".py", ".pyi", ".pyx", ".toml", ".txt", ".yaml"}
    folders = ("poseidon", "ray_jobs", "ext", "configs", "docs", "tests")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return sorted([*inside, *(path for path in ROOT.iterdir() if path.suffix in suffixes), ROOT / ".ci" / "run"])


def commands_for(word):
    return re.findall(rf"^python3 -m venv .*{word}.*$", README, re.MULTILINE)


def stub_names(body, prefix=""):
    """Every public name of a stub: "Class.property", "Class.method(self, first)", "function(first)"."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from stub_names(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            parameters = ", ".join(argument.arg for argument in node.args.args)
            yield f"{prefix}{node.name}" if node.decorator_list else f"{prefix}{node.name}({parameters})"
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield f"{prefix}{node.target.id}"


def compiled_names(owner, module, prefix=""):
    """The same of what was compiled; what a module imported is not its own."""
    for name, value in vars(owner).items():
        if name.startswith("_") or inspect.ismodule(value) or getattr(value, "__module__", module) != module:
            continue
        if inspect.isclass(value):
            yield from compiled_names(value, module, f"{prefix}{name}.")
        elif callable(value):
            yield f"{prefix}{name}({', '.join(inspect.signature(value).parameters)})"
        else:
            yield f"{prefix}{name}"


def test_the_installed_version_is_that_of_the_project():
    assert version(PROJECT["name"]) == PROJECT["version"]


def test_the_changelog_has_a_heading_for_what_is_not_released_yet():
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["poseidon-search", "pytest"])
def test_the_readme_has_one_command_to_run_and_one_to_test_and_ci_runs_both(word):
    (command,) = commands_for(word)
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert f"\nrun_readme {word}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_shows_what_the_quickstart_prints():
    shown = re.search(r"^```text\n(.+?)^```$", README, re.MULTILINE | re.DOTALL)[1].splitlines()
    (command,) = commands_for("poseidon-search")
    arguments = command.split("poseidon-search ")[1].split()
    run = subprocess.run(
        [sys.executable, "-m", "poseidon.cli", "search", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert without_effort(run.stdout.splitlines()) == without_effort(shown)


def without_effort(lines):
    """All but the line that says how much work the search was."""
    return [line for line in lines if not line.startswith("Search: ")]


def test_every_dependency_has_a_row_in_the_documentation():
    documented = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    optional = [name for group in PROJECT["optional-dependencies"].values() for name in group]
    names = [re.match(r"[\w.-]+(\[\w+\])?", item)[0].lower() for item in [*PROJECT["dependencies"], *optional, *build]]
    assert [name for name in names if f"| {name}" not in documented] == []


def test_every_file_of_the_documentation_is_in_its_index():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    files = [path.name for path in (ROOT / "docs").iterdir() if path.suffix == ".md" and path.name != "README.md"]
    assert [name for name in files if f"({name})" not in index] == []


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_has_a_stub_that_says_what_it_offers(kernel):
    module = ".".join(kernel.relative_to(ROOT / "ext").with_suffix("").parts)
    stub = ast.parse((ROOT / module.replace(".", "/")).with_suffix(".pyi").read_text(encoding="utf-8"))
    assert sorted(compiled_names(import_module(module), module)) == sorted(stub_names(stub.body))


def test_no_file_names_a_place_on_some_machine():
    places = re.compile(rf"(?<![\w.])/({'|'.join(['work', 'root', 'home', 'tmp', 'farm'])})/")
    named = [path.relative_to(ROOT) for path in text_files() if places.search(path.read_text(encoding="utf-8"))]
    assert named == []


def test_every_data_file_of_the_package_goes_into_the_wheel():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    matched = {path for pattern in declared["poseidon"] for path in (ROOT / "poseidon").glob(pattern)}
    code = {".py", ".pyc", ".so", ".c", ".cpp"}
    data = [path for path in (ROOT / "poseidon").rglob("*") if path.is_file() and path.suffix not in code]
    assert len(data) > 20
    assert [path for path in data if path not in matched] == []


def test_files_stay_short():
    sources = [path for path in text_files() if path.suffix in {".py", ".pyx", ".pxd"}]
    long = {str(path.relative_to(ROOT)) for path in sources if path.read_text(encoding="utf-8").count("\n") > 400}
    assert long == set(LONG_FILES)
