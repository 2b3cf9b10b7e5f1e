"""The shape of a pipeline: schedule, stages, micro-batches, chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from poseidon.schedule import get_schedule


@dataclass(frozen=True)
class PipelineShape:
    """Schedule, stages, micro-batches and chunks of a pipeline."""

    schedule: str
    num_stages: int
    num_micro_batches: int
    num_chunks: int = 1

    @property
    def depths(self) -> tuple[int, ...]:
        """Depth of each link, for the adaptive schedule: 1, which takes the least memory."""
        return (1,) * (self.num_stages - 1) if self.schedule == "adaptive_1f1b" else ()

    def refusal(self) -> str | None:
        """Why the schedule refuses this shape; None if it accepts it."""
        schedule = get_schedule(self.schedule)
        return schedule.check_shape(self.num_stages, self.num_micro_batches, self.num_chunks, depths=self.depths)

    def warmup_forwards(self) -> tuple[int, ...]:
        """For each stage the chunk forwards before its first backward: with all our schedules it never holds more."""
        return _warmup_forwards(self)


@lru_cache(maxsize=1024)
def _warmup_forwards(shape: PipelineShape) -> tuple[int, ...]:
    schedule = get_schedule(shape.schedule)
    sizes = (shape.num_stages, shape.num_micro_batches, shape.num_chunks)
    return tuple(schedule.warmup_forwards(stage, *sizes, depths=shape.depths) for stage in range(shape.num_stages))
