"""What a policy comes to on an experiment, as a row: the columns of `poseidon compare` and a few more."""

from __future__ import annotations

import pyarrow as pa

from poseidon.compare.compare import Comparison
from poseidon.compare.entrant import ENTRANTS
from poseidon.compare.entry import Entry
from poseidon.compare.parquet import COLUMNS
from poseidon.compare.row import comparison_to_json
from poseidon.inputs.experiment import Experiment
from poseidon.paper.request import Request
from poseidon.paper.study import Row
from poseidon.planner import find_plan
from poseidon.search.result import TerminationReason
from poseidon.sweep.schema import Column

_POINT = pa.struct([("seconds", pa.float64()), ("iteration_time_ms", pa.float64())])
TRAINING_COLUMNS = (
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("seq_length", pa.int32(), "tokens of a sequence"),
    Column("micro_batch_sizes", pa.list_(pa.field("element", pa.int32())), "sequences of a micro-batch to choose from"),
)
ENTRANT_COLUMNS = (
    *(column for column in COLUMNS if column.name != "slower"),
    *TRAINING_COLUMNS,
    Column("time_limit_s", pa.float64(), "seconds that the search got at the most"),
    Column("workers", pa.int32(), "processes that searched"),
    Column("curve", pa.list_(pa.field("element", _POINT)), "the best plan so far, at each improvement"),
)


def entrant_row(request: Request, experiment: Experiment, name: str) -> Row:
    """One policy on one experiment; KeyboardInterrupt where the search was interrupted: then it has no row."""
    limited = ENTRANTS[name].experiment(experiment, request.time_limit_s)
    answer = find_plan(limited, backend=request.backend)
    if answer.search.termination is TerminationReason.INTERRUPTED:
        raise KeyboardInterrupt
    return entry_to_row(experiment, Entry(name, answer)) | {
        "time_limit_s": request.time_limit_s,
        "workers": answer.search.workers,
        "curve": [{"seconds": seconds, "iteration_time_ms": time_ms} for seconds, time_ms in answer.search.curve],
    }


def entry_to_row(experiment: Experiment, entry: Entry) -> Row:
    """An entry of a comparison with what it was on; without the search's own columns."""
    data = comparison_to_json(Comparison(experiment, (entry,), interrupted=False))
    [found] = data["entries"]
    found.pop("slower", None)
    return {
        **{name: data[name] for name in ("experiment", "model", "cluster", "num_devices")},
        **found,
        **training_values(experiment),
    }


def training_values(experiment: Experiment) -> Row:
    """The values of `TRAINING_COLUMNS`."""
    training = experiment.training
    return {
        "global_batch_size": training.global_batch_size,
        "seq_length": training.seq_length,
        "micro_batch_sizes": list(training.micro_batch_sizes),
    }
