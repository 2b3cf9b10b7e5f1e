"""Which run a result belongs to: a hash of everything that the result depends on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from poseidon.inputs.experiment import Experiment
from poseidon.sweep.host import poseidon_version

SCHEMA = "poseidon.sweep/1"
"""Version of the rows; a new one makes every run a new run."""


def run_identity(experiment: Experiment) -> str:
    """SHA-256 of the resolved experiment, the files that it was read from, and the version of this program.

    The profile counts by the content of its file, not by its path, which depends on the working directory.
    """
    inputs = experiment.resolved()
    inputs.pop("profile")
    return _digest({"experiment": inputs, "is_analytic": experiment.profile == "analytic"})


def refused_identity(name: str, reason: str) -> str:
    """The identity of a point that is no experiment."""
    return _digest({"refused": name, "reason": reason})


def _digest(content: dict[str, Any]) -> str:
    document = {"schema": SCHEMA, "poseidon_version": poseidon_version(), **content}
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
