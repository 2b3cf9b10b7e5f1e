"""One run of loading: opens files, remembers their hashes, and collects mistakes instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.reading import ReadDocument, read_tolerantly
from poseidon.inputs.source_file import SourceFile

Value = TypeVar("Value")


class Loading:
    """The files read so far (key to SHA-256) and the mistakes found so far."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self.files: dict[str, str] = {}
        self.mistakes: list[Mistake] = []
        self._fields: set[tuple[str, str]] = set()

    def read(self, source: SourceFile) -> ReadDocument:
        """Reads a file and remembers its hash; raises InputError when there is nothing to check."""
        document = read_tolerantly(source.path)
        self.files[source.key] = document.sha256
        self._collect(document.mistakes)
        return document

    def read_referred(self, target: SourceFile, referrer: SourceFile, place: Sequence[str | int]) -> ReadDocument:
        """Reads a file that `referrer` names at `place`, which is where a file that cannot be read is reported."""
        try:
            return self.read(target)
        except InputError as error:
            raise InputError(_at_referrer(mistake, referrer, place) for mistake in error.mistakes) from None

    def attempt(self, step: Callable[[], Value]) -> Value | None:
        """The step's value, or None after its mistakes have been collected."""
        try:
            return step()
        except InputError as error:
            self._collect(error.mistakes)
            return None

    def _collect(self, mistakes: Iterable[Mistake]) -> None:
        """Adds mistakes; one of reading stands for what checking says about the same field."""
        new = [mistake for mistake in mistakes if (mistake.file, mistake.field) not in self._fields]
        self.mistakes += new
        self._fields |= {(mistake.file, mistake.field) for mistake in new if mistake.field}

    def finish(self) -> None:
        """Raises InputError with all mistakes, if there are any."""
        if self.mistakes:
            raise InputError(self.mistakes)


def _at_referrer(mistake: Mistake, referrer: SourceFile, place: Sequence[str | int]) -> Mistake:
    if mistake.field:
        return mistake
    return Mistake(referrer.label, field_path(place), f"{mistake.file}: {mistake.message}")
