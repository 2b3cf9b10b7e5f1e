"""The problem that the search solves: one outer choice, with every cost worked out.

A *kind* is what a stage can run on: an accelerator type with a TP degree. A problem says how many stages each kind
fills, what a layer costs there, how many layers fit at each place of the pipeline and what a boundary between two
stages costs. The search knows nothing else about models and clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Place:
    """A stage (0-based) with a number of warm-up forwards: one more than the depths of the links after it add up to.

    The schedule caps the warm-up at the number of micro-batches.
    """

    stage: int
    warmup: int


@lru_cache(maxsize=256)
@lru_cache(maxsize=1024)
def places(num_stages: int, most_depth: int) -> tuple[Place, ...]:
    """The places of a pipeline whose links have depths from 1 to `most_depth`."""
    return tuple(
        Place(stage, warmup)
        for stage in range(num_stages)
        for warmup in range(num_stages - stage, 2 + most_depth * (num_stages - 1 - stage))
    )


@dataclass(frozen=True)
class LayerCost:
    """Time of one layer (or of an extra such as the head), in milliseconds.

    `forward_ms` and `backward_ms` are per micro-batch, `all_reduce_ms` (gradient all-reduce over DP) per iteration.
    """

    forward_ms: float = 0.0
    backward_ms: float = 0.0
    all_reduce_ms: float = 0.0


@dataclass(frozen=True)
class Kind:
    """An accelerator type with a TP degree, as one of the choices for a stage.

    `layers[t]` is the cost of one layer of type t; `first` and `last` are added on the pipeline's first and last stage.
    `max_layers[p]` is the memory limit in layers at place p (`Problem.places`: the stages, in most schedules): one
    number for every first layer, or one for each first layer of the stage (shape: places x 1 or places x num_layers; 0
    where the kind cannot serve).
    """

    name: str
    stages: int
    """Stages that it fills: exactly this many; at most this many where it shares a pool or devices may stay idle."""
    stages_per_node: int
    layers: tuple[LayerCost, ...]
    first: LayerCost
    last: LayerCost
    max_layers: tuple[tuple[int, ...], ...]
    pool: str = ""
    """The pool of devices that it draws from (see `Pool`); empty: it has its own."""
    devices: int = 1
    """Devices that a stage takes from the pool."""


@dataclass(frozen=True)
class Pool:
    """Devices that several kinds share: those of one accelerator type when the TP degree is chosen stage by stage.

    Stages take consecutive devices in pipeline order; a stage lies inside one node or covers whole nodes.
    """

    name: str
    devices: int
    devices_per_node: int


@dataclass(frozen=True)
class Problem:
    """One outer choice (DP, TP, micro-batch size, schedule), ready to solve.

    `intra_node_ms[a][b]` and `inter_node_ms[a][b]` (K x K) are the time of one activation from a stage of kind a to the
    next stage, of kind b, and of one gradient from a stage of kind a back to the previous stage, of kind b; infinite
    where the two cannot talk. `layer_types[j]` is the type of layer j (empty: one type only).
    """

    name: str
    schedule: str
    num_chunks: int
    num_micro_batches: int
    num_layers: int
    num_stages: int
    assignment: str
    """``node``: the pipeline takes whole nodes in some order; ``stage``: any order of kinds."""
    kinds: tuple[Kind, ...]
    intra_node_ms: Matrix
    inter_node_ms: Matrix
    layer_types: tuple[int, ...] = ()
    layer_type_names: tuple[str, ...] = ("layer",)
    pools: tuple[Pool, ...] = ()
    allow_idle: bool = False
    """Devices may be left without a stage."""
    most_depth: int = 1
    """Largest depth of a link between stages (adaptive_1f1b); 1 where the schedule leaves no choice."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Every stage with every warm-up it may get, stage by stage, least warm-up first."""
        return places(self.num_stages, self.most_depth)

    def type_of_layer(self, layer: int) -> int:
        """The type of a layer, as an index into `layer_type_names`."""
        return self.layer_types[layer] if self.layer_types else 0
