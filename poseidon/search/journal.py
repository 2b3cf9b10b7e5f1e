"""A record on disk of what a search has done, so that another process can go on after this one is gone.

JSON lines: a head that says which search it is, then every outcome in the order in which the driver took it. A shard
that is recorded is never done again; what was being worked on is. Lines are written as they come, so that a killed
process loses nothing but a half-written line, which the next one cuts off.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem_file import problem_to_json
from poseidon.errors import InputError, Mistake
from poseidon.search.frontier import Frontier, OrderFrontier, TreeFrontier
from poseidon.search.result import Counters, StageChoice
from poseidon.search.shard import Context, Found, Outcome
from poseidon.whole_file import refuse_link

if TYPE_CHECKING:
    from poseidon.search.driver import Driver

SCHEMA = "poseidon.journal/1"
DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    OverflowError,
    StopIteration,
    zlib.error,
)
"""What a record that is none leads to: it was written by another program, or changed since."""
FIRST_WRITE_S = 1.0
"""A search that is done before leaves no trace on disk."""


class Journal:
    """Keeps the record of one search in a file."""

    def __init__(self, path: Path, context: Context, *, resume: bool) -> None:
        """With `resume`, goes on with what the file holds, if there is one.

        Raises InputError where the file is the record of another search, or no record.
        """
        self.path = path
        self._key = key_of(context)
        self._started = time.perf_counter()
        self._lines: list[bytes] = []
        self._file: BinaryIO | None = None
        self._records: list[dict[str, Any]] = []
        self._is_replaying = False
        refuse_link(path)
        if resume and path.exists() and path.stat().st_size > 0:
            self._records, length = self._read()
            self._file = path.open("r+b")
            self._file.truncate(length)
            self._file.seek(length)
        else:
            self._note({"schema": SCHEMA, "search": self._key})

    @property
    def num_replayed(self) -> int:
        """Shards that an earlier process finished."""
        return sum("outcome" in record for record in self._records)

    def replay(self, driver: Driver) -> None:
        """Brings a driver, whose first shards are added, to where the earlier process stopped."""
        self._is_replaying = True
        for number, record in enumerate(self._records, start=2):
            try:
                _replay(record, driver)
            except DAMAGE as error:
                message = f"is damaged ({type(error).__name__}); remove it, or search without --resume"
                raise InputError(Mistake(str(self.path), f"line {number}", message)) from None
        self._is_replaying = False

    def note_found(self, found: Found) -> None:
        """Records a plan."""
        self._note({"found": found_to_json(found)})

    def note_split(self, number: int, parts: int, next_number: int) -> None:
        """Records that a shard was split; its parts are numbered from `next_number`."""
        self._note({"split": number, "parts": parts, "next": next_number})

    def note_outcome(self, outcome: Outcome, next_number: int) -> None:
        """Records an outcome; the shard of what it left has the number `next_number`."""
        self._note({"outcome": outcome_to_json(outcome), "next": next_number})

    def close(self, *, is_over: bool) -> None:
        """Nothing more will come; the file goes where the search is over."""
        if not is_over and len(self._lines) > 1:
            self._write()
        if self._file is not None:
            self._file.close()
            if is_over:
                self.path.unlink(missing_ok=True)

    def _note(self, record: dict[str, Any]) -> None:
        if self._is_replaying:
            return
        self._lines.append(json.dumps(record).encode() + b"\n")
        if self._file is not None or time.perf_counter() - self._started >= FIRST_WRITE_S:
            self._write()

    def _write(self) -> None:
        try:
            if self._file is None:
                self._file = self.path.open("wb")
            self._file.write(b"".join(self._lines))
            self._file.flush()
        except OSError as error:
            raise InputError(Mistake(str(self.path), "", f"cannot be written: {error.strerror}")) from None
        self._lines.clear()

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """The whole records after the head, and the bytes that they take."""
        records, length = [], 0
        for line, record in _whole_lines(self.path):
            if length == 0:
                self._check_head(record)
            else:
                records.append(record)
            length += len(line)
        if length == 0:
            raise InputError(Mistake(str(self.path), "", f"is no journal of a search; accepted: {SCHEMA}"))
        return records, length

    def _check_head(self, head: dict[str, Any]) -> None:
        if head.get("schema") != SCHEMA:
            raise InputError(Mistake(str(self.path), "schema", f"is {head.get('schema')!r}; accepted: {SCHEMA}"))
        if head.get("search") != self._key:
            raise InputError(
                Mistake(str(self.path), "search", "is the journal of another search: inputs, options or version differ")
            )


def _replay(record: dict[str, Any], driver: Driver) -> None:
    if "found" in record:
        driver.found(found_from_json(record["found"]))
    elif "split" in record:
        shard = driver.take_queued(record["split"])
        driver.next_number = record["next"]
        driver.apply_split(shard, record["parts"])
    else:
        outcome = outcome_from_json(record["outcome"])
        shard = driver.take_queued(outcome.number)
        driver.next_number = record["next"]
        driver.apply(shard, outcome)


def key_of(context: Context) -> str:
    """A digest of all that decides how a search goes, but for limits of time."""
    options = asdict(context.options)
    del options["time_limit_s"]
    problems = [problem_to_json(problem) for problem in context.problems]
    text = json.dumps([version("poseidon-planner"), options, problems], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _whole_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The lines that are complete, from the first on, with what they hold."""
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except (ValueError, RecursionError):
                return
            if not isinstance(record, dict):
                return
            yield line, record


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    data = zlib.compress(np.ascontiguousarray(array).tobytes(), 1)
    return {"dtype": array.dtype.str, "shape": array.shape, "data": base64.b64encode(data).decode()}


def _unpacked(packed: dict[str, Any]) -> NDArray[Any]:
    data = zlib.decompress(base64.b64decode(packed["data"]))
    return np.frombuffer(data, dtype=packed["dtype"]).reshape(packed["shape"]).copy()


def _frontier_to_json(frontier: Frontier) -> dict[str, Any]:
    if isinstance(frontier, TreeFrontier):
        arrays = {"path": _packed(frontier.path), "rows": _packed(frontier.rows)}
        return {**arrays, "is_relaxed": frontier.is_relaxed}
    return {"position": _packed(frontier.position)}


def _frontier_from_json(data: dict[str, Any]) -> Frontier:
    if "path" in data:
        return TreeFrontier(_unpacked(data["path"]), _unpacked(data["rows"]), data["is_relaxed"], is_foreign=True)
    return OrderFrontier(_unpacked(data["position"]))


def found_to_json(found: Found) -> dict[str, Any]:
    """A plan; times keep all their digits."""
    return {
        "problem": found.problem,
        "stages": [[stage.kind, *stage.layers] for stage in found.stages],
        "iteration_time_ms": found.iteration_time_ms,
        "depths": found.depths,
    }


def found_from_json(data: dict[str, Any]) -> Found:
    """What `found_to_json` wrote."""
    stages = tuple(StageChoice(kind, tuple(layers)) for kind, *layers in data["stages"])
    return Found(data["problem"], stages, data["iteration_time_ms"], tuple(data["depths"]))


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome without its tables, which are built anew."""
    return {
        "number": outcome.number,
        "problem": outcome.problem,
        "floor_ms": outcome.floor_ms,
        "frontier": None if outcome.frontier is None else _frontier_to_json(outcome.frontier),
        "found": None if outcome.found is None else found_to_json(outcome.found),
        "counters": asdict(outcome.counters),
        "cpu_seconds": outcome.cpu_seconds,
        "given_up": outcome.given_up,
        "num_above": outcome.num_above,
        "has_layer_cuts": outcome.has_layer_cuts,
        "cuts": None if outcome.cuts is None else [_packed(cuts) for cuts in outcome.cuts],
    }


def outcome_from_json(data: dict[str, Any]) -> Outcome:
    """What `outcome_to_json` wrote."""
    cuts = data["cuts"]
    return Outcome(
        number=data["number"],
        problem=data["problem"],
        floor_ms=data["floor_ms"],
        frontier=None if data["frontier"] is None else _frontier_from_json(data["frontier"]),
        found=None if data["found"] is None else found_from_json(data["found"]),
        counters=Counters(**data["counters"]),
        cpu_seconds=data["cpu_seconds"],
        given_up=data["given_up"],
        num_above=data["num_above"],
        has_layer_cuts=data["has_layer_cuts"],
        cuts=None if cuts is None else (_unpacked(cuts[0]), _unpacked(cuts[1])),
    )
