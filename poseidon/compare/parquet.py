"""A comparison as a Parquet file (docs/rivals.md lists the columns)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from poseidon.compare.compare import Comparison
from poseidon.compare.row import SCHEMA, comparison_to_json
from poseidon.sweep.schema import Column
from poseidon.whole_file import write_whole

COMPARISON_FILE = "comparison.parquet"
_INTS = pa.list_(pa.field("element", pa.int32()))
_STAGE = pa.struct(
    [
        ("accelerator", pa.string()),
        ("dp", pa.int32()),
        ("tp", pa.int32()),
        ("micro_batch_size", pa.int32()),
        ("layers", _INTS),
        ("nodes", _INTS),
        ("memory_bytes", pa.int64()),
        ("memory_limit_bytes", pa.int64()),
    ]
)
COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("model", pa.string(), "name of the model"),
    Column("cluster", pa.string(), "name of the cluster"),
    Column("num_devices", pa.int32(), "devices of the cluster"),
    Column("entrant", pa.string(), "exact, exact-wide, eq1, paper, brute-force, metis or hexiscale"),
    Column("status", pa.string(), "optimal, feasible, infeasible, unknown or refused"),
    Column("reason", pa.string(), "why there is no plan; empty when there is one"),
    Column("termination", pa.string(), "why the search stopped"),
    Column("iteration_time_ms", pa.float64(), "time of an iteration under the DAG"),
    Column("slower", pa.float64(), "how much slower than the fastest plan, a fraction"),
    Column("static_ms", pa.float64(), "time of the same plan under Eq. 1"),
    Column("static_error", pa.float64(), "how far Eq. 1 is off, a fraction of the time under the DAG"),
    Column("lower_bound_ms", pa.float64(), "a time that no plan of the entrant's space beats; 0: none is known"),
    Column("search_s", pa.float64(), "seconds of the search"),
    Column("fits", pa.bool_(), "whether every stage fits in memory"),
    Column("fullest_memory_fraction", pa.float64(), "part of its limit that the fullest stage takes"),
    Column("tokens_per_second", pa.float64(), "global batch x sequence length / iteration time"),
    Column("mfu", pa.float64(), "model FLOPs utilisation, a fraction"),
    Column("bubble_fraction", pa.float64(), "the part of the device time in which stages wait"),
    Column("pp", pa.int32(), "pipeline stages"),
    Column("num_micro_batches", pa.int32(), "micro-batches of an iteration"),
    Column("schedule", pa.string(), "pipeline schedule"),
    Column("plan", pa.string(), "the stages as (DP,TP,type,layers)xCOUNT"),
    Column("stages", pa.list_(pa.field("element", _STAGE)), "the stages in pipeline order"),
    Column("outer_choices", pa.int32(), "outer choices; of metis and hexiscale the candidates"),
    Column("search_nodes", pa.int64(), "search nodes; of metis and hexiscale the candidates"),
    Column("simulations", pa.int64(), "complete configurations timed"),
    Column("warnings", pa.list_(pa.field("element", pa.string())), "warnings of the search"),
)


def write_comparison(comparison: Comparison, directory: Path) -> Path:
    """Writes the rows into a directory that is there; returns the file's path."""
    data = comparison_to_json(comparison)
    common = {name: data[name] for name in ("experiment", "model", "cluster", "num_devices")}
    fields = [column.field for column in COLUMNS]
    rows = [{**common, **row} for row in data["entries"]]
    table = pa.Table.from_pylist(rows, schema=pa.schema(fields, metadata={"schema": SCHEMA}))
    path = directory / COMPARISON_FILE
    write_whole(path, lambda temporary: pq.write_table(table, temporary))
    return path
