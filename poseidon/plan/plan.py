"""A plan as values: which devices form each pipeline stage, which layers they hold, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poseidon.cost.memory import StageMemory
from poseidon.cost.outer import GIVEN
from poseidon.inputs.experiment import Experiment
from poseidon.search.result import SolutionStatus, TerminationReason

LayerRange = tuple[int, int]
"""(first, end): 0-based, the end excluded."""


@dataclass(frozen=True)
class NodeDevices:
    """Devices of one node: the node's number in the cluster, and the devices' numbers within it (all 0-based)."""

    node: int
    devices: tuple[int, ...]


@dataclass(frozen=True)
class PlannedStage:
    """One pipeline stage, the same in all DP replicas.

    `layer_ranges`, `forward_ms` and `backward_ms` have one entry per chunk. `ranks` are the global ranks in the order
    TP, then DP, then PP; rank i of them runs on the i-th of `devices`. Times are milliseconds per micro-batch
    (`all_reduce_ms`: per iteration), memory that of one device.
    """

    kind: str
    accelerator: str
    tp: int
    layer_ranges: tuple[LayerRange, ...]
    devices: tuple[NodeDevices, ...]
    ranks: tuple[int, ...]
    forward_ms: tuple[float, ...]
    backward_ms: tuple[float, ...]
    send_forward_ms: float
    send_backward_ms: float
    all_reduce_ms: float
    bubble_ms: float
    memory: StageMemory

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers of each chunk."""
        return tuple(end - first for first, end in self.layer_ranges)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that the stage lies on."""
        return tuple(part.node for part in self.devices)

    @property
    def num_devices(self) -> int:
        """D x TP."""
        return sum(len(part.devices) for part in self.devices)

    @property
    def dp(self) -> int:
        """Replicas of the stage; the same for all stages of a pipeline unless they were given one by one."""
        return self.num_devices // self.tp


@dataclass(frozen=True)
class CriticalPathShares:
    """What the iteration time consists of: parts of the critical path, which add up to 1."""

    stages: tuple[float, ...]
    """Forwards and backwards of each stage."""
    transfers: float
    """Messages between stages that nothing hides."""
    all_reduce: float
    """The gradient all-reduce at the end."""

    @property
    def bottleneck(self) -> tuple[int, int]:
        """The fewest consecutive stages with three quarters of all stages' parts, (first, end), the end excluded.

        One stage, where the path runs through its operations for most of the iteration; several, where the path goes
        back and forth between them.
        """
        count, enough = len(self.stages), 0.75 * sum(self.stages)
        windows = ((first, first + size) for size in range(1, count + 1) for first in range(count - size + 1))
        return next(window for window in windows if sum(self.stages[slice(*window)]) >= enough)


@dataclass(frozen=True)
class Pipeline:
    """One complete configuration of one outer choice, with its simulated time.

    `dp` and `micro_batch_size` are those of the first stage, and of all others unless `dp_differs`.
    """

    outer_choice: str
    schedule: str
    dp: int
    micro_batch_size: int
    num_micro_batches: int
    num_chunks: int
    depths: tuple[int, ...]
    """Depth of each link (adaptive_1f1b; empty for other schedules)."""
    recompute: str
    iteration_time_ms: float
    tokens_per_second: float
    mfu: float
    """Model FLOPs of an iteration / what the devices in use could do in its time (see `model_flops`)."""
    bubble_fraction: float
    """The part of the device time in which stages wait."""
    critical_path: CriticalPathShares
    stages: tuple[PlannedStage, ...]
    idle: tuple[NodeDevices, ...]
    """Devices without a stage."""

    @property
    def pp(self) -> int:
        """Number of pipeline stages."""
        return len(self.stages)

    @property
    def tp(self) -> int | None:
        """The TP degree of all stages; None where it differs."""
        degrees = {stage.tp for stage in self.stages}
        return degrees.pop() if len(degrees) == 1 else None

    @property
    def is_given(self) -> bool:
        """Whether the stages were given one by one by a policy that does not search outer choices."""
        return self.outer_choice.startswith(f"{GIVEN} ")

    @property
    def dp_differs(self) -> bool:
        """Whether stages differ in DP; a micro-batch is then shared out over each stage's own replicas."""
        return any(stage.dp != self.dp for stage in self.stages)

    @property
    def global_batch_size(self) -> int:
        """Sequences of an iteration."""
        return self.dp * self.micro_batch_size * self.num_micro_batches

    def micro_batch_of(self, stage: PlannedStage) -> int:
        """Sequences of a micro-batch on one replica of a stage."""
        return self.dp * self.micro_batch_size // stage.dp

    @property
    def num_devices(self) -> int:
        """Devices in use."""
        return sum(stage.num_devices for stage in self.stages)


@dataclass(frozen=True)
class SearchSummary:
    """What the search did, for the plan file."""

    policy: str
    termination: TerminationReason
    seconds: float
    """From the inputs read to the plan proven."""
    outer_choices: int
    nodes: int
    """Search nodes."""
    simulations: int
    pruned: Mapping[str, int]
    """Branches that were cut, by rule."""
    workers: int
    backend: str
    warnings: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]
    """(seconds, iteration time in ms) at each improvement of the best plan."""


@dataclass(frozen=True)
class Plan:
    """The answer: the fastest pipeline found, what is proven about it, and where it came from."""

    status: SolutionStatus
    pipeline: Pipeline
    lower_bound_ms: float
    gap: float
    """Proven distance from the optimum, as a fraction of the iteration time."""
    experiment: Experiment
    search: SearchSummary
    alternatives: tuple[Pipeline, ...]
    """The next best pipelines, at most one for each outer choice."""


@dataclass(frozen=True)
class NoPlan:
    """The answer when there is no plan: `status` is infeasible, or unknown when the search was stopped too early."""

    status: SolutionStatus
    reason: str
    """What binds and what would help, in plain sentences."""
    search: SearchSummary
