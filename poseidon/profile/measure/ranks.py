"""The processes that measure together, started by torchrun on one node: one for each device."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from poseidon.errors import InputError, Mistake
from poseidon.profile.measure.device import Device


@dataclass(frozen=True)
class Environment:
    """What torchrun says about this process; without torchrun one process, alone."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @classmethod
    def read(cls) -> Environment:
        """From the environment; raises InputError for more than one node."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        rank, world_size, local_rank = (int(os.environ.get(name, 1 if name == "WORLD_SIZE" else 0)) for name in names)
        if world_size != int(os.environ.get("LOCAL_WORLD_SIZE", world_size)):
            message = "profiles one node at a time; run it on each node type and put the files together with --merge"
            raise InputError(Mistake("torchrun", "", message))
        return cls(rank, world_size, local_rank)


@dataclass
class Ranks:
    """This process among the others, and the groups that they form."""

    device: Device
    rank: int = 0
    world_size: int = 1
    _groups: dict[tuple[int, int], Any] = field(default_factory=dict)

    def barrier(self) -> None:
        """Returns when all processes are here."""
        if self.world_size > 1:
            self.slowest((0.0,))

    def slowest(self, values: Sequence[float]) -> tuple[float, ...]:
        """The largest of each value over all processes; all get the same."""
        if self.world_size == 1:
            return tuple(values)
        shared = torch.tensor(values, dtype=torch.float32, device=self.device.torch_device)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return tuple(float(value) for value in shared.tolist())

    def group(self, size: int, stride: int) -> Any | None:
        """This process's group of `size` ranks that are `stride` apart; None where it is left over.

        Groups fill the ranks from 0: TP groups have stride 1, the DP groups of a stage stride TP. All processes must
        ask for the same groups in the same order.
        """
        if (size, stride) not in self._groups:
            self._groups[size, stride] = self._new_group(size, stride)
        return self._groups[size, stride]

    def _new_group(self, size: int, stride: int) -> Any | None:
        block = size * stride
        mine = None
        for start in range(0, self.world_size - block + 1, block):
            for offset in range(stride):
                members = list(range(start + offset, start + block, stride))
                group = dist.new_group(members)
                mine = group if self.rank in members else mine
        return mine


@contextmanager
def joined(environment: Environment, device: Device) -> Iterator[Ranks]:
    """All processes, connected; alone without torchrun."""
    device.select()
    if environment.world_size == 1:
        yield Ranks(device)
        return
    # Tells nccl which device is this process's before the first collective; the others take the selected one.
    bound = {"device_id": device.torch_device} if device.kind == "cuda" else {}
    dist.init_process_group(device.backend, **bound)
    yield Ranks(device, environment.rank, environment.world_size)
    # Not after an exception: the others may wait for this process elsewhere.
    dist.destroy_process_group()
