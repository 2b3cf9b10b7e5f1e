"""Plans that were found before, by everything that they were made from."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

from poseidon.errors import PoseidonError
from poseidon.inputs.experiment import Experiment
from poseidon.output.json_text import json_document
from poseidon.output.plan_file import read_plan
from poseidon.output.plan_json import plan_to_json
from poseidon.plan import assured
from poseidon.plan.plan import Plan
from poseidon.search.result import TerminationReason
from poseidon.whole_file import write_whole_text


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/poseidon/launch``; ``~/.cache`` where the variable is not an absolute path (XDG's rule)."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "poseidon" / "launch"


def cache_file(experiment: Experiment) -> Path:
    """Where the plan of an experiment is kept: the name is a hash of all inputs and of Poseidon's version.

    A profile counts by its content (`Experiment.files`), not by where it lies.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("poseidon-planner")
    except PackageNotFoundError:
        release = "not installed"
    inputs = experiment.resolved() | {"profile": Path(experiment.profile).name}
    key = json.dumps({"poseidon": release, "inputs": inputs}, sort_keys=True)
    return cache_directory() / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


REPEATABLE = (
    TerminationReason.COMPLETE,
    TerminationReason.GAP,
    TerminationReason.NODE_LIMIT,
    TerminationReason.TOO_LARGE,
)


def is_repeatable(plan: Plan) -> bool:
    """Whether every search of the same experiment ends with this plan: no clock and no user has ended this one."""
    return plan.search.termination in REPEATABLE


def cached_plan(experiment: Experiment) -> Plan | None:
    """The plan that was kept for an experiment; None where there is none that passes all checks of a plan."""
    file = cache_file(experiment)
    try:
        plan = read_plan(file)
        if not is_repeatable(plan) or not _is_for(plan, experiment):
            return None
        return assured(replace(plan, experiment=experiment))
    except PoseidonError:
        return None  # not there, damaged, or not ours: it is made anew


def _is_for(plan: Plan, experiment: Experiment) -> bool:
    """The same inputs; the profile may lie elsewhere."""
    return plan.experiment.model_copy(update={"profile": experiment.profile}) == experiment


def keep_plan(plan: Plan) -> None:
    """Keeps a plan that every search of its experiment ends with."""
    if not is_repeatable(plan):
        return
    try:
        write_whole_text(cache_file(plan.experiment), json_document(plan_to_json(plan)) + "\n")
    except PoseidonError:
        return  # no room or no right to write there: the next run searches again
