"""The columns are what docs/sweep.md says, and what is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from poseidon.sweep.conduct import conduct
from poseidon.sweep.executor import InProcess
from poseidon.sweep.grid import Run
from poseidon.sweep.schema import COLUMNS, row_schema, sweep_schema
from poseidon.sweep.store import Store
from poseidon.sweep.sweep import Sweep
from tests.sweep.test_store import Counting

DOCUMENT = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")


def type_text(data_type: object) -> str:
    return re.sub(r"\belement: ", "", str(data_type))


def test_every_column_is_documented_with_its_type_and_meaning() -> None:
    section = DOCUMENT.partition("## Columns")[2]
    documented = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| (.+) \|$", section, re.MULTILINE)
    stage = "list<stage>"
    assert documented == [
        (column.name, stage if column.name == "stages" else type_text(column.type), column.description)
        for column in COLUMNS
    ]


def test_every_field_of_a_stage_is_documented() -> None:
    stage = row_schema().field("stages").type.value_type
    line = next(line for line in DOCUMENT.splitlines() if line.startswith("`kind: "))
    assert line == ", ".join(f"`{field.name}: {type_text(field.type)}`" for field in stage)


def test_the_written_files_have_these_columns_with_their_descriptions(
    sweep_of: Callable[..., tuple[Sweep, tuple[Run, ...]]], tmp_path: Path
) -> None:
    sweep, runs = sweep_of(axes={"training.global_batch_size": [16, 32], "search.policy": ["exact"]})
    result = conduct(sweep, runs, Store(tmp_path / "out"), InProcess(), Counting())
    merged = pq.read_schema(result.file)
    assert merged.equals(sweep_schema(sweep.axes), check_metadata=True)
    assert merged.names[:2] == ["axis.training.global_batch_size", "axis.search.policy"]
    assert [str(field.type) for field in merged][:2] == ["double", "string"]
    for path in (tmp_path / "out" / "runs").iterdir():
        assert pq.read_schema(path).equals(row_schema(), check_metadata=True)
    assert all(field.metadata[b"description"] for field in merged)


def test_units_are_in_the_names() -> None:
    units = {"time": "_ms", "bound": "_ms", "memory": "_bytes"}
    for word, unit in units.items():
        assert all(column.name.endswith(unit) for column in COLUMNS if word in column.name.split("_"))
