"""Measures messages between devices of a node, and all-reduces over groups of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from poseidon.profile.measure.cells import AllReduceCell, TransferCell
from poseidon.profile.measure.ranks import Ranks
from poseidon.profile.measure.repeats import Repeats, repeated
from poseidon.profile.measure.results import MessageResult

FLOAT_BYTES = 4
"""Messages are fp32, as gradients are; every backend takes them."""


def measure_transfer(cell: TransferCell, ranks: Ranks, repeats: Repeats) -> MessageResult:
    """Half of the time of a message and its answer.

    Each device of the first half of the node exchanges with one of the second half, all at once, as the devices of two
    neighbouring stages do; a device that is left over only waits.
    """
    half = ranks.world_size // 2
    message = torch.zeros(cell.num_bytes // FLOAT_BYTES, device=ranks.device.torch_device)

    def exchange() -> None:
        if ranks.rank < half:
            dist.send(message, ranks.rank + half)
            dist.recv(message, ranks.rank + half)
        elif ranks.rank < 2 * half:
            dist.recv(message, ranks.rank - half)
            dist.send(message, ranks.rank - half)

    (timing,) = repeated(lambda: [both / 2 for both in _slowest_ms(exchange, ranks)], repeats)
    return MessageResult(timing)


def measure_all_reduce(cell: AllReduceCell, ranks: Ranks, repeats: Repeats) -> MessageResult:
    """The gradient all-reduce of every stage of the node at once."""
    group = ranks.group(cell.dp, cell.tp)
    values = torch.zeros(cell.num_bytes // FLOAT_BYTES, device=ranks.device.torch_device)
    (timing,) = repeated(lambda: _slowest_ms(lambda: dist.all_reduce(values, group=group), ranks), repeats)
    return MessageResult(timing)


def _slowest_ms(action: Callable[[], object], ranks: Ranks) -> tuple[float, ...]:
    ranks.barrier()
    ranks.device.synchronize()
    start = time.perf_counter()
    action()
    ranks.device.synchronize()
    return ranks.slowest((1e3 * (time.perf_counter() - start),))
