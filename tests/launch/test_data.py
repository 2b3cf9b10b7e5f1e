"""The tables that the launcher ships."""

from __future__ import annotations

import csv
from pathlib import Path

from poseidon.cli import launch_options
from poseidon.launch.flag_table import framework_flags, launcher_flags
from poseidon.launch.framework import NAMES
from poseidon.launch.plan_flags import SPLIT_FLAGS
from poseidon.launch.read_model import MODEL_FLAGS
from poseidon.launch.read_recompute import RECOMPUTE_FLAGS
from poseidon.launch.read_training import TRAINING_FLAGS
from poseidon.launch.unmodelled import rules

COPY = Path(__file__).parents[1] / "output" / "export" / "data" / "megatron-arguments.tsv"
NOT_IN_TABLES = {"--use-legacy-models"}
"""Of older versions than the one whose flags are listed."""


def test_megatrons_flags_are_those_of_its_parser() -> None:
    flags = framework_flags()
    with COPY.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) > 800
    for row in rows:
        for name in row["flags"].split("|"):
            assert flags[name].num_values == ("1" if row["nargs"] == "None" else row["nargs"]), name


def test_every_flag_that_is_named_exists() -> None:
    known = framework_flags().keys() | NOT_IN_TABLES
    named = {*SPLIT_FLAGS, *MODEL_FLAGS, *TRAINING_FLAGS, *RECOMPUTE_FLAGS, *(rule.flag for rule in rules())}
    assert named - known == set()


def test_rules_are_well_formed() -> None:
    for rule in rules():
        assert rule.verdict in ("never", "unless-accepted", "note"), rule
        assert rule.when.split()[0] in ("given", "above", "is", "not"), rule
        assert "\n" not in rule.reason


def test_the_launchers_own_options_are_known() -> None:
    assert launcher_flags()["--nproc-per-node"].num_values == "1"
    assert launcher_flags()["-m"].name == "--module"


def test_the_command_knows_every_framework() -> None:
    assert launch_options.FRAMEWORKS == NAMES
