"""Conducts the evaluation: the studies that exhibits need, each measured once for the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from poseidon.paper.exhibit import Exhibit
from poseidon.paper.identity import Effort, check_folder, study_identity
from poseidon.paper.provenance import stamped
from poseidon.paper.request import Request
from poseidon.paper.rows_file import Parts, StudyRows, forget, read_rows, write_rows
from poseidon.paper.study import Study

PROGRESS_FOLDER = "progress"
"""Where studies keep what may take longer than a run; `redo` leaves it alone."""


class Observer(Protocol):
    """Is told how far the evaluation is."""

    def begin(self, total: int) -> None:
        """So many studies are needed."""

    def started(self, study: Study) -> None:
        """A study is measured from now on."""

    def tell(self, line: str) -> None:
        """What the study measures now."""

    def finished(self, study: Study, *, kept: bool) -> None:
        """The rows of a study are there; `kept`: they were before."""


@dataclass(frozen=True)
class Evaluation:
    """The studies of some exhibits, finished, by name; in `measured` those that were not kept from an earlier run."""

    found: dict[str, StudyRows]
    measured: frozenset[str]


def needed(exhibits: Sequence[Exhibit], studies: Sequence[Study]) -> tuple[Study, ...]:
    """The studies that exhibits take rows of, in the order of `studies`."""
    names = {name for exhibit in exhibits for name in exhibit.studies}
    return tuple(study for study in studies if study.name in names)


def conduct(
    studies: Sequence[Study], request: Request, directory: Path, observer: Observer, *, redo: bool = False
) -> Evaluation:
    """Measures the studies whose rows are not in the directory yet, or not of the same inputs (`redo`: all).

    Raises InputError where an experiment is absent or can't be used. An interruption passes through; finished studies,
    and finished parts of the one it met, are kept by then.
    """
    check_folder(request.experiments, tuple(studies))
    backend = request.backend
    effort = Effort(
        request.time_limit_s,
        "in-process" if backend is None else backend.name,
        1 if backend is None else backend.num_workers,
    )
    identities = {study.name: study_identity(study, request.experiments, effort) for study in studies}
    found, measured = {}, set()
    observer.begin(len(studies))
    for study in studies:
        kept = None if redo else read_rows(directory, study)
        is_same = kept is not None and kept.identity == identities[study.name]
        if kept is None or not is_same:
            observer.started(study)
            if redo:
                forget(directory, study)
            kept = _measured(study, request, directory, StudyRows(study, identities[study.name], effort, ()), observer)
            measured.add(study.name)
        found[study.name] = kept
        observer.finished(study, kept=is_same)
    return Evaluation(found, frozenset(measured))


def kept_studies(studies: Sequence[Study], directory: Path) -> Evaluation:
    """What the directory holds of the studies, whatever it was measured from."""
    found = {study.name: kept for study in studies if (kept := read_rows(directory, study)) is not None}
    return Evaluation(found, frozenset())


def _measured(study: Study, request: Request, directory: Path, blank: StudyRows, observer: Observer) -> StudyRows:
    """The rows of a study, measured now but for the parts that an interrupted run left, and written."""
    parts = Parts(directory, study, blank.identity)
    names = frozenset(study.experiments)
    own = replace(request, tell=observer.tell, store=parts, names=names, progress=directory / PROGRESS_FOLDER)
    rows = tuple(stamped(row) for row in study.run(own))
    write_rows(directory, replace(blank, rows=rows))
    parts.clear()
    written = read_rows(directory, study)
    assert written is not None, f"the rows of {study.name} can't be read back"
    return written
