"""The exception tree: everything that Poseidon raises for a person derives from `PoseidonError`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class PoseidonError(Exception):
    """Base of all errors meant for people; the command line turns it into one clear message and an exit code."""

    exit_code = 1


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong with an input.

    `file` names the document, `field` the path inside it (``nodes[0].devices``; empty for the whole document),
    `message` says what is wrong and what is accepted, in one sentence.
    """

    file: str
    field: str
    message: str

    def __str__(self) -> str:
        """The mistake as one printable line, whatever the names in it are."""
        where = ": ".join(part for part in (self.file, self.field) if part)
        line = f"{where}: {self.message}" if where else self.message
        return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class InputError(PoseidonError):
    """Input that cannot be used; carries every mistake found, one line each."""

    exit_code = 2

    def __init__(self, mistakes: Mistake | Iterable[Mistake]) -> None:
        """Takes one mistake or several; they are reported together, in the given order."""
        self.mistakes = (mistakes,) if isinstance(mistakes, Mistake) else tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Mistake, ...]]]:
        """Pickles by its mistakes, so that it survives the trip from a worker process."""
        return (InputError, (self.mistakes,))


class MissingPackageError(PoseidonError):
    """An optional package that is not installed; says how to get it."""

    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        """`extra` is the group of optional dependencies that brings the package."""
        self.package, self.extra = package, extra
        super().__init__(f"{package} is not installed: pip install 'poseidon-planner[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingPackageError], tuple[str, str]]:
        """Pickles by its parts, so that it survives the trip from a worker process."""
        return (MissingPackageError, (self.package, self.extra))
