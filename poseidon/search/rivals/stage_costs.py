"""What stages cost and hold, for planners that put stages together one by one; worked out once for each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.given_stages import GivenPipeline, GivenStage, given_pipeline
from poseidon.cost.layer_limits import DeviceMemory, Limits, layer_limits
from poseidon.cost.part_rows import require_rows
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.cost.problem import Kind, Problem
from poseidon.errors import InputError, Mistake
from poseidon.inputs.training import Recompute, ScheduleName
from poseidon.profile.degrees import tp_refusal
from poseidon.search.rivals.rival import RivalTask

SCHEDULE: ScheduleName = "1f1b"
"""The only schedule that the rivals plan for (Poseidon paper, section 6.2.1)."""


@dataclass(frozen=True)
class StageCost:
    """A stage's times per micro-batch and all-reduces (ms): `work_ms[n]` is that of the model's first n layers."""

    work_ms: tuple[float, ...]
    all_reduce_ms: tuple[float, ...]
    kind: Kind
    memory: DeviceMemory

    def stage_ms(self, first: int, end: int, *, is_first: bool, is_last: bool) -> float:
        """Forward and backward of a micro-batch over layers first .. end - 1, embedding and head included."""
        extras = self.kind.first.forward_ms + self.kind.first.backward_ms if is_first else 0.0
        extras += self.kind.last.forward_ms + self.kind.last.backward_ms if is_last else 0.0
        return self.work_ms[end] - self.work_ms[first] + extras

    def stage_all_reduce_ms(self, first: int, end: int, *, is_first: bool, is_last: bool) -> float:
        """The gradient all-reduce of the same stage."""
        extras = self.kind.first.all_reduce_ms if is_first else 0.0
        extras += self.kind.last.all_reduce_ms if is_last else 0.0
        return self.all_reduce_ms[end] - self.all_reduce_ms[first] + extras


class StageCosts:
    """Costs of the stages of one experiment; raises InputError where the profile lacks a row."""

    def __init__(self, task: RivalTask) -> None:
        """Raises InputError where the experiment does not allow the rivals' schedule."""
        self.experiment = task.experiment
        if SCHEDULE not in self.experiment.training.schedules:
            file = next(iter(self.experiment.files), self.experiment.name)
            message = f"policy {self.experiment.search.policy} plans {SCHEDULE} only; add it to the schedules"
            raise InputError(Mistake(file, "training.schedules", message))
        self.recompute: Recompute = self.experiment.training.recompute_modes[0]
        self.pools = task.pools
        self._profile = task.profile
        self._builder = ProblemBuilder(task.experiment, task.profile)
        self._costs: dict[tuple[int, int, int, int], StageCost] = {}
        self._pairs: dict[tuple[int, int, int, int, int, int, int], Problem] = {}
        self._limits: dict[tuple[int, int, int, int, int], Limits] = {}
        model = self.experiment.model
        self._types = [model.distinct_layer_types.index(name) for name in model.layer_types]

    def can_serve(self, pool: int, dp: int, tp: int, num_micro_batches: int) -> bool:
        """Whether TP is allowed, and the batch divides over the replicas into micro-batches to choose from."""
        training, devices = self.experiment.training, self.pools[pool].group.devices
        size, rest = divmod(training.global_batch_size, num_micro_batches * dp)
        return (
            not rest
            and size in training.micro_batch_sizes
            and devices % tp == 0
            and tp_refusal(self.experiment.model, tp) is None
        )

    def stage(self, pool: int, dp: int, tp: int, num_micro_batches: int) -> StageCost:
        """The cost of a stage of D x TP devices from a pool (by index), for so many micro-batches."""
        key = (pool, dp, tp, num_micro_batches)
        if key not in self._costs:
            pipeline = self.pipeline([(pool, dp, tp)] * 2, num_micro_batches)
            choice = pipeline.choice
            require_rows(self._profile, self.experiment, [choice])
            kind = self._builder.build(choice).kinds[0]
            layers = [kind.layers[index] for index in self._types]
            self._costs[key] = StageCost(
                work_ms=tuple(accumulate((cost.forward_ms + cost.backward_ms for cost in layers), initial=0.0)),
                all_reduce_ms=tuple(accumulate((cost.all_reduce_ms for cost in layers), initial=0.0)),
                kind=kind,
                memory=self._builder.device_memory(choice, choice.layout.placements[0]),
            )
        return self._costs[key]

    def limits(self, pool: int, dp: int, tp: int, num_micro_batches: int, num_stages: int) -> Limits:
        """Most layers of such a stage at each place of a pipeline (`layer_limits`)."""
        key = (pool, dp, tp, num_micro_batches, num_stages)
        if key not in self._limits:
            shape = PipelineShape(SCHEDULE, num_stages, num_micro_batches)
            self._limits[key] = layer_limits(self.stage(*key[:4]).memory, shape, self._types)
        return self._limits[key]

    def boundary_ms(
        self, before: tuple[int, int, int], after: tuple[int, int, int], num_micro_batches: int, *, same_node: bool
    ) -> float:
        """One activation between two stages, each (pool, DP, TP); infinite where they can't talk."""
        key = (*before, *after, num_micro_batches)
        if key not in self._pairs:
            self._pairs[key] = self._builder.build(self.pipeline([before, after], num_micro_batches).choice)
        problem = self._pairs[key]
        times = problem.intra_node_ms if same_node else problem.inter_node_ms
        return times[0][-1]

    def pipeline(self, stages: list[tuple[int, int, int]], num_micro_batches: int) -> GivenPipeline:
        """The pipeline of these stages, each (pool, DP, TP); each must be one that `can_serve`."""
        given = [GivenStage(self.pools[pool], dp, tp) for pool, dp, tp in stages]
        pipeline = given_pipeline(self.experiment, self.pools, given, num_micro_batches, SCHEDULE, self.recompute)
        assert not isinstance(pipeline, str), pipeline
        return pipeline


def limit_at(limits: Limits, stage: int, first: int) -> int:
    """Most layers of a stage that starts at a layer."""
    row = limits[stage]
    return row[first] if len(row) > 1 else row[0]
