"""Columns that every row of every study has: when and on what it was measured."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from poseidon.sweep.host import poseidon_version, this_host
from poseidon.sweep.schema import Column

PROVENANCE = (
    Column("measured_at", pa.timestamp("us", tz="UTC"), "when the row was measured"),
    Column("processor", pa.string(), "model of the machine's processor"),
    Column("num_cpus", pa.int32(), "logical processors that could be used"),
    Column("load", pa.float64(), "average load of the machine in the minute before the row was done"),
    Column("python_version", pa.string(), "version of Python"),
    Column("poseidon_version", pa.string(), "version of this program"),
)


def stamped(row: dict[str, Any]) -> dict[str, Any]:
    """The row with what is true of a row that was measured right now, unless it has that already."""
    if "measured_at" in row:
        return row
    host = this_host()
    return row | {
        "measured_at": datetime.now(UTC),
        "processor": host.processor,
        "num_cpus": host.num_cpus,
        "load": host.load,
        "python_version": host.python_version,
        "poseidon_version": poseidon_version(),
    }
