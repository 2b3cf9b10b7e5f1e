"""A sweep's result as JSON values: what `--json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from poseidon.sweep.conduct import SweepResult
from poseidon.sweep.schema import AXIS_PREFIX, COLUMNS

_LEFT_OUT = frozenset({"stages", "experiment", "files", "started_at"})
"""Long columns; the Parquet file has them."""


def result_to_json(result: SweepResult, plots: Sequence[Path]) -> dict[str, Any]:
    """Where the rows and plots are, and the rows without their long columns; a column without a value is null."""
    axes = [AXIS_PREFIX + axis.name for axis in result.axes]
    names = [*axes, *(column.name for column in COLUMNS if column.name not in _LEFT_OUT)]
    rows = [
        {name: row.get(name) for name in names} | {"started_at": row["started_at"].isoformat()} for row in result.rows
    ]
    return {
        "sweep": result.name,
        "file": str(result.file),
        "plots": [str(path) for path in plots],
        "done_before": result.num_kept,
        "runs": rows,
    }
