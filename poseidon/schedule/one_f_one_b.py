"""1F1B: as few micro-batches in flight as the depth of the pipeline allows."""

from __future__ import annotations

from poseidon.schedule.schedule import Schedule, Shape


class OneFOneB(Schedule):
    """Stage s of N runs min(M, N - s) forwards first (PipeDream-flush, arXiv 2006.09503; Megatron-LM)."""

    name = "1f1b"
    summary = "one forward, one backward: stage s of N starts with N - s forwards"

    def _warmup(self, shape: Shape, stage: int) -> int:
        return min(shape.num_micro_batches, shape.num_stages - stage)
