"""The project as a whole: versions, files that must be there, commands that must not drift."""

import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXT = {".cfg", ".in", ".json", ".jsonl", ".md", ".pxd", ".py", ".pyi", ".pyx", ".toml", ".yaml", ""}


def project_files():
    """Files that a clone has; everything but what builds and tools leave behind where git cannot tell."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    if not names:
        folders = ("poseidon", "ray_jobs", "ext", "configs", "docs", "tests")
        names = [path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*")]
    return [path for path in map(ROOT.joinpath, names) if path.is_file() and path.suffix in TEXT]
