"""Eager 1F1B: twice the warm-up of 1F1B, which hides transfers behind computation and costs memory."""

from __future__ import annotations

from poseidon.schedule.schedule import Schedule, Shape


class EagerOneFOneB(Schedule):
    """Stage s of N runs min(M, 2 (N - 1 - s) + 1) forwards first (arXiv 2211.05322; Alpa's `1f1b_overlap_friendly`)."""

    name = "eager_1f1b"
    summary = "1F1B with twice the warm-up: stage s of N starts with 2 (N - 1 - s) + 1 forwards"

    def _warmup(self, shape: Shape, stage: int) -> int:
        return min(shape.num_micro_batches, 2 * (shape.num_stages - 1 - stage) + 1)
