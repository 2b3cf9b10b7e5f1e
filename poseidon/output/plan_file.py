"""Plan files: written in one go or not at all, read with every mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.file_model import shown
from poseidon.inputs.reading import read_document
from poseidon.inputs.validation import validate
from poseidon.output.json_text import json_document
from poseidon.output.plan_json import SCHEMA, plan_to_json
from poseidon.output.plan_model import PlanRecord
from poseidon.plan.plan import Plan
from poseidon.whole_file import write_whole_text

FILE_NAME = "plan.json"


def read_plan(path: str | Path) -> Plan:
    """Reads a plan file; raises InputError with every mistake found."""
    return plan_from_json(read_document(path).data, os.path.normpath(path))


def plan_from_json(data: Mapping[str, Any], file: str) -> Plan:
    """Reads a plan document that `file` names in errors."""
    schema = data.get("schema")
    if schema != SCHEMA:
        found = "is missing" if schema is None else f"{shown(schema)} is not known"
        raise InputError(Mistake(file, "schema", f"{found}; {SCHEMA!r} is expected in a plan"))
    fields = {key: value for key, value in data.items() if key != "schema"}
    return validate(PlanRecord, fields, file).plan()


def prepare_directory(directory: Path) -> None:
    """Makes the directory that a plan will be written to; InputError where that can't be, before any work is done."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(Mistake(str(directory), "", f"cannot be made: {error.strerror}")) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(Mistake(str(directory), "", "cannot be written to"))


def write_plan(plan: Plan, directory: str | Path) -> Path:
    """Writes ``plan.json`` into a directory, replacing an older one at once; returns its path."""
    target = Path(directory) / FILE_NAME
    prepare_directory(target.parent)
    write_whole_text(target, json_document(plan_to_json(plan)) + "\n")
    return target
