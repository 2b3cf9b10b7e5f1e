from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from poseidon.cli.entry import poseidon, run


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON; a number that JSON does not have is an error."""
        return json.loads(self.out, parse_constant=_refuse)

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line, parse_constant=_refuse) for line in self.out.splitlines()]

    @property
    def mistakes(self) -> list[str]:
        """The lines of standard error."""
        return self.err.splitlines()


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs ``poseidon`` with arguments in this process."""

    def call(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        status = run(poseidon, "poseidon", [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return call
