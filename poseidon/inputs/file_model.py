"""The base of every record that is read from a file: frozen, no unknown keys, all problems reported together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Self, TypeGuard

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

PROBLEM = "poseidon_problem"
"""Error type of the problems that this project words itself; `validation` passes their text on unchanged."""

SENSIBLE = 10**15
"""Larger numbers are out of every field's range; checks of several fields pass them over."""

MAX_PROBLEMS = 100
"""Most problems that one record reports."""


@dataclass(frozen=True)
class Problem:
    """What is wrong at one place of a record: `location` below the record, then one plain sentence."""

    location: tuple[str | int, ...]
    message: str


class FileModel(BaseModel):
    """A frozen record of a file. Subclasses may add `derived_defaults` and `cross_checks`.

    Pydantic alone skips the checks that involve several fields as soon as one field is wrong. Here those checks look at
    the raw mapping, so that a person sees every mistake of the file at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    derived_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that a file may leave out because they follow from others (`derived_defaults`)."""

    @classmethod
    def derived_defaults(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values of `derived_fields`, as far as the unchecked `data` allows."""
        return {}

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """Problems that involve several fields; `data` is unchecked, so values of a wrong type are passed over."""
        yield from ()

    def record_checks(self) -> Iterator[Problem]:
        """Problems that involve several parts of a record whose fields are all right."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _report_together(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        # An explicit null means "not given" wherever a derived default exists.
        given = {
            key: _plain(value) for key, value in data.items() if value is not None or key not in cls.derived_fields
        }
        complete = {**cls.derived_defaults(given), **given}
        complete = {key: value for key, value in complete.items() if key in cls.model_fields}
        unknown = [key for key in data if key not in cls.model_fields][:MAX_PROBLEMS]
        misspelt = _misspelt(unknown, cls.model_fields) if cls.model_config.get("extra") == "forbid" else {}
        problems = [*_unknown_keys(misspelt, cls.model_fields), *islice(cls.cross_checks(complete), MAX_PROBLEMS)]
        try:
            record = handler(complete)
        except ValidationError as error:
            absent = (cls.derived_fields | set(misspelt.values())) - given.keys()
            raise _merged(cls.__name__, error, problems, absent) from None
        problems += record.record_checks()
        if problems:
            raise _merged(cls.__name__, None, problems)
        return record


def _plain(value: Any) -> Any:
    """A record given as a value (not read from a file), as the mapping it stands for."""
    return value.model_dump() if isinstance(value, FileModel) else value


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that `word` most likely means, or None."""
    matches = difflib.get_close_matches(str(word)[:100].lower(), list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def _misspelt(unknown: list[Any], known: Iterable[str]) -> dict[Any, str | None]:
    """The known key that each unknown key most likely means."""
    return {key: nearest(key, known) for key in unknown}


def _unknown_keys(misspelt: Mapping[Any, str | None], known: Iterable[str]) -> Iterator[Problem]:
    for key, suggestion in misspelt.items():
        hint = f"did you mean {suggestion!r}?" if suggestion else f"the known keys are {', '.join(known)}"
        yield Problem((), f"unknown key {shown(key)}; {hint}")


def shown(value: object, limit: int = 60) -> str:
    """A value as a message shows it: on one line, printable, cut when long."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return f"a number of about {'-' if value < 0 else ''}1e{int(value.bit_length() * 0.30103)}"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _merged(
    title: str, error: ValidationError | None, problems: list[Problem], absent: Set[str | None] = frozenset()
) -> ValidationError:
    """All problems as one error; what is wrong with an `absent` field is said where it derives from or is misspelt."""
    details = [InitErrorDetails(type=_custom(item.message), loc=item.location, input=None) for item in problems]
    items = error.errors(include_url=False) if error else []
    elsewhere = [item for item in items if item["loc"][:1] not in {(name,) for name in absent}]
    for item in items if not details and not elsewhere else elsewhere:
        kind: str | PydanticCustomError = item["type"]
        if kind == PROBLEM:
            kind = _custom(item["ctx"]["message"])
        details.append(InitErrorDetails(type=kind, loc=item["loc"], input=item["input"], ctx=item.get("ctx", {})))
    return ValidationError.from_exception_data(title, details)


def _custom(message: str) -> PydanticCustomError:
    return PydanticCustomError(PROBLEM, "{message}", {"message": message})


def is_number(value: object) -> TypeGuard[float]:
    """Whether an unchecked value is a number (not a truth value) of a size that some field accepts."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < SENSIBLE


def is_count(value: object) -> TypeGuard[int]:
    """Whether an unchecked value is a whole number of at least one, of a size that some field accepts."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < SENSIBLE
