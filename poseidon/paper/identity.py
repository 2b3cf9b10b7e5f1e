"""Whether rows on disk are those of the same inputs: a hash of everything that a study's rows depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import load_experiment
from poseidon.paper.study import Study
from poseidon.sweep.host import poseidon_version
from poseidon.sweep.identity import run_identity

SCHEMA = "poseidon.paper/1"
"""Version of the rows; a new one makes all of them old."""


@dataclass(frozen=True)
class Effort:
    """How hard the searches try, and where; part of what rows depend on."""

    time_limit_s: float
    backend: str
    """in-process, local or ray."""
    num_workers: int


def check_folder(folder: Path, studies: tuple[Study, ...]) -> None:
    """Raises InputError, with what to give, where the experiments of the studies are not in the folder."""
    names = dict.fromkeys(name for study in studies for name in study.experiments)
    hint = "give --experiments the folder configs/experiments of the source tree (an installed package has no configs)"
    if names and not folder.is_dir():
        raise InputError(Mistake(str(folder), "", f"no such folder of experiments; {hint}"))
    absent = [name for name in names if not (folder / f"{name}.yaml").is_file()]
    if absent:
        files = ", ".join(f"{name}.yaml" for name in absent)
        raise InputError(Mistake(str(folder), "", f"has no {files}; {hint}"))


def study_identity(study: Study, folder: Path, effort: Effort) -> str:
    """SHA-256 of the study's experiments with all their files, its columns, the effort and the version."""
    content = {
        "schema": SCHEMA,
        "study": study.name,
        "columns": [f"{column.name}: {column.type}" for column in study.columns],
        "experiments": {name: run_identity(load_experiment(folder / f"{name}.yaml")) for name in study.experiments},
        "effort": [effort.time_limit_s, effort.backend, effort.num_workers],
        "version": poseidon_version(),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
