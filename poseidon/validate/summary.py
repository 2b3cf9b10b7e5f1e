"""What a list of comparisons adds up to, as JSON-able values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from poseidon.validate.comparison import Comparison, Row, Target


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """One comparison with all of its rows."""
    return {
        "name": comparison.name,
        "title": comparison.title,
        "source": comparison.source,
        "basis": comparison.basis,
        "met": comparison.met,
        "summary": comparison.summary,
        "targets": [_target_to_json(target) for target in comparison.targets],
        "rows": [_row_to_json(row) for row in comparison.rows],
        "notes": list(comparison.notes),
    }


def results_to_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """All comparisons; `met` says whether every target of each is."""
    return {
        "schema": "poseidon.accuracy/1",
        "met": all(comparison.met for comparison in comparisons),
        "comparisons": [comparison_to_json(comparison) for comparison in comparisons],
    }


def _target_to_json(target: Target) -> dict[str, Any]:
    return {
        "description": target.description,
        "value": None if math.isnan(target.value) else target.value,
        "limit": target.limit,
        "sense": target.sense,
        "unit": target.unit,
        "met": target.met,
        "cause": target.cause,
    }


def _row_to_json(row: Row) -> dict[str, Any]:
    return {
        "label": row.label,
        "group": row.group,
        "predicted": row.predicted,
        "observed": row.observed,
        "unit": row.unit,
        "held_out": row.held_out,
        "note": row.note,
    }
