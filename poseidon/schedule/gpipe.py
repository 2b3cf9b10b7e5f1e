"""GPipe: all forwards, then all backwards."""

from __future__ import annotations

from poseidon.schedule.schedule import Schedule, Shape


class GPipe(Schedule):
    """Every stage runs all M forwards, then all M backwards, micro-batch 0 first in both (arXiv 1811.06965)."""

    name = "gpipe"
    summary = "all forwards, then all backwards: every activation is in flight at once"

    def _warmup(self, shape: Shape, stage: int) -> int:
        return shape.num_micro_batches
