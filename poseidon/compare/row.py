"""An entry as a row: the same values in `--json` and in Parquet."""

from __future__ import annotations

from typing import Any

from poseidon.compare.compare import Comparison
from poseidon.compare.entry import Entry, fits, fullest_fraction, static_error, static_ms, table_1_text
from poseidon.plan.plan import Pipeline, Plan, PlannedStage, SearchSummary

SCHEMA = "poseidon.comparison/1"
Row = dict[str, Any]


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison."""
    experiment = comparison.experiment
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "model": experiment.model.name,
        "cluster": experiment.cluster.name,
        "num_devices": experiment.cluster.num_devices,
        "entries": [entry_row(comparison, entry) for entry in comparison.entries],
    }


def entry_row(comparison: Comparison, entry: Entry) -> Row:
    """Values by column (`schema.COLUMNS`); a column that does not apply is left out."""
    row: Row = {"entrant": entry.name, "status": entry.status, "reason": entry.reason}
    if entry.search is not None:
        row |= _search(entry.search)
    if isinstance(entry.answer, Plan):
        row |= {"lower_bound_ms": entry.answer.lower_bound_ms, "slower": comparison.slower(entry)}
        row |= _pipeline(entry.answer.pipeline)
    return row


def _search(search: SearchSummary) -> Row:
    return {
        "termination": str(search.termination),
        "search_s": search.seconds,
        "outer_choices": search.outer_choices,
        "search_nodes": search.nodes,
        "simulations": search.simulations,
        "warnings": list(search.warnings),
    }


def _pipeline(pipeline: Pipeline) -> Row:
    return {
        "iteration_time_ms": pipeline.iteration_time_ms,
        "static_ms": static_ms(pipeline),
        "static_error": static_error(pipeline),
        "tokens_per_second": pipeline.tokens_per_second,
        "mfu": pipeline.mfu,
        "bubble_fraction": pipeline.bubble_fraction,
        "fits": fits(pipeline),
        "fullest_memory_fraction": fullest_fraction(pipeline),
        "pp": pipeline.pp,
        "num_micro_batches": pipeline.num_micro_batches,
        "schedule": pipeline.schedule,
        "plan": table_1_text(pipeline),
        "stages": [_stage(pipeline, stage) for stage in pipeline.stages],
    }


def _stage(pipeline: Pipeline, stage: PlannedStage) -> Row:
    return {
        "accelerator": stage.accelerator,
        "dp": stage.dp,
        "tp": stage.tp,
        "micro_batch_size": pipeline.micro_batch_of(stage),
        "layers": list(stage.layers),
        "nodes": list(stage.nodes),
        "memory_bytes": round(stage.memory.total_bytes),
        "memory_limit_bytes": round(stage.memory.limit_bytes),
    }
