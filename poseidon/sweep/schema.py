"""The columns of a sweep's rows (docs/sweep.md lists them), as an Arrow schema with a description of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from poseidon.sweep.identity import SCHEMA
from poseidon.sweep.sweep import Axis

AXIS_PREFIX = "axis."


def _list(data_type: pa.DataType) -> pa.DataType:
    """A list; its entries are called as Parquet calls them, so that a schema is the same after it was written."""
    return pa.list_(pa.field("element", data_type))


_INTS = _list(pa.int32())
_FLOATS = _list(pa.float64())
_STAGE = pa.struct(
    [
        ("kind", pa.string()),
        ("accelerator", pa.string()),
        ("tp", pa.int32()),
        ("layers", _INTS),
        ("nodes", _INTS),
        ("forward_ms", _FLOATS),
        ("backward_ms", _FLOATS),
        ("send_forward_ms", pa.float64()),
        ("send_backward_ms", pa.float64()),
        ("all_reduce_ms", pa.float64()),
        ("bubble_ms", pa.float64()),
        ("memory_bytes", pa.int64()),
        ("memory_limit_bytes", pa.int64()),
    ]
)
_FILE = pa.struct([("path", pa.string()), ("sha256", pa.string())])


@dataclass(frozen=True)
class Column:
    """A column of every row."""

    name: str
    type: pa.DataType
    description: str

    @property
    def field(self) -> pa.Field:
        """As Parquet keeps it, with its description."""
        return pa.field(self.name, self.type, metadata={"description": self.description})


COLUMNS = (
    Column("run_id", pa.string(), "SHA-256 of the resolved inputs, their files and the version"),
    Column("run", pa.int32(), "place in the grid, 0-based, the last axis fastest"),
    Column("name", pa.string(), "axes and labels"),
    Column("status", pa.string(), "optimal, feasible, infeasible, time-limit, refused or error"),
    Column("reason", pa.string(), "why there is no plan; empty when there is one"),
    Column("termination", pa.string(), "why the search stopped"),
    Column("model", pa.string(), "name of the model"),
    Column("cluster", pa.string(), "name of the cluster"),
    Column("num_devices", pa.int32(), "devices of the cluster"),
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("seq_length", pa.int32(), "tokens of a sequence"),
    Column("policy", pa.string(), "search policy"),
    Column("iteration_time_ms", pa.float64(), "simulated time of an iteration"),
    Column("lower_bound_ms", pa.float64(), "a time that no configuration of the space beats"),
    Column("gap", pa.float64(), "(time - bound) / time"),
    Column("tokens_per_second", pa.float64(), "global batch x sequence length / iteration time"),
    Column("mfu", pa.float64(), "model FLOPs utilisation, a fraction"),
    Column("bubble_fraction", pa.float64(), "the part of the device time in which stages wait"),
    Column("dp", pa.int32(), "data-parallel degree"),
    Column("pp", pa.int32(), "pipeline stages"),
    Column("tp", pa.int32(), "tensor-parallel degree; null where it differs between stages"),
    Column("micro_batch_size", pa.int32(), "sequences of a micro-batch"),
    Column("num_micro_batches", pa.int32(), "micro-batches of an iteration"),
    Column("schedule", pa.string(), "pipeline schedule"),
    Column("num_chunks", pa.int32(), "chunks of layers of a stage"),
    Column("recompute", pa.string(), "activations that are recomputed"),
    Column("num_idle_devices", pa.int32(), "devices without a stage"),
    Column("stages", _list(_STAGE), "the stages as in poseidon.plan/1; layers and times by chunk"),
    Column("outer_choices", pa.int32(), "outer choices of the search"),
    Column("search_nodes", pa.int64(), "branch-and-bound nodes"),
    Column("simulations", pa.int64(), "complete configurations timed"),
    Column("search_s", pa.float64(), "seconds of the search, from the inputs read to the plan proven"),
    Column("warnings", _list(pa.string()), "warnings of the search"),
    Column("backend", pa.string(), "in-process, local or ray"),
    Column("attempts", pa.int32(), "times that the run was begun; more than 1 after a worker died"),
    Column("started_at", pa.timestamp("us", tz="UTC"), "when the run began"),
    Column("run_s", pa.float64(), "seconds of the whole run, checks of the plan included"),
    Column("host", pa.string(), "name of the machine"),
    Column("processor", pa.string(), "model of its processor"),
    Column("num_cpus", pa.int32(), "logical processors that the run could use"),
    Column("load", pa.float64(), "average load of the machine in the minute before the run"),
    Column("python_version", pa.string(), "version of Python"),
    Column("poseidon_version", pa.string(), "version of this program"),
    Column("experiment", pa.string(), "the whole experiment as resolved, JSON; null for refused inputs"),
    Column("files", _list(_FILE), "SHA-256 of every file that was read, by path relative to the sweep file"),
)


def row_schema() -> pa.Schema:
    """The columns that every row of every sweep has."""
    return pa.schema([column.field for column in COLUMNS], metadata={"schema": SCHEMA})


def sweep_schema(axes: Sequence[Axis]) -> pa.Schema:
    """The columns of `runs.parquet`: an axis each, then those of every row."""
    fields = [axis_column(axis).field for axis in axes]
    return pa.schema([*fields, *row_schema()], metadata={"schema": SCHEMA})


def axis_column(axis: Axis) -> Column:
    """The column of an axis: numbers where all its labels are numbers, else text."""
    data_type = pa.float64() if axis.is_numeric else pa.string()
    return Column(AXIS_PREFIX + axis.name, data_type, f"label of the axis {axis.name}")
