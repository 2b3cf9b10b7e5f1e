"""A schedule as data: for each stage the list of its operations, in the order in which it runs them."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.schedule.action import Action
from poseidon.schedule.placement import Placement, place_of, virtual_stage


@dataclass(frozen=True)
class Order:
    """The operations of every stage in execution order.

    `stages[s]` are the actions of stage s. Activations run from virtual stage to virtual stage: chunk c of stage s is
    virtual stage ``c * num_stages + s``, so they leave the last stage for the first stage's next chunk; with placement
    ``v`` odd chunks count from the last stage, which hands its own result over to its next chunk. An `Order` may be
    wrong (that is for `check_order` to say); only its outline is enforced here, with ValueError.
    """

    num_stages: int
    num_micro_batches: int
    num_chunks: int
    stages: tuple[tuple[Action, ...], ...]
    placement: Placement = "loop"

    def __post_init__(self) -> None:
        """Refuses an outline that no pipeline has."""
        for name, value in (
            ("num_stages", self.num_stages),
            ("num_micro_batches", self.num_micro_batches),
            ("num_chunks", self.num_chunks),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if len(self.stages) != self.num_stages:
            raise ValueError(
                f"an order of {self.num_stages} stages needs {self.num_stages} lists, not {len(self.stages)}"
            )

    @property
    def num_virtual_stages(self) -> int:
        """Number of chunks of all stages together."""
        return self.num_stages * self.num_chunks

    def virtual_stage(self, stage: int, chunk: int) -> int:
        """The virtual stage that is chunk `chunk` of stage `stage`."""
        return virtual_stage(self.placement, self.num_stages, stage, chunk)

    def place_of(self, virtual: int) -> tuple[int, int]:
        """The (stage, chunk) that is virtual stage `virtual`."""
        return place_of(self.placement, self.num_stages, virtual)

    @property
    def num_operations(self) -> int:
        """Number of operations of all stages together."""
        return sum(map(len, self.stages))

    @property
    def splits_backward(self) -> bool:
        """Whether some backward is split into its input part I and its weight part W."""
        return any(action.kind in "IW" for actions in self.stages for action in actions)

    def warmup_forwards(self, stage: int) -> int:
        """Number of forwards that `stage` runs before its first backward (B or I)."""
        for position, action in enumerate(self.stages[stage]):
            if action.kind in "BI":
                return position
        return len(self.stages[stage])
