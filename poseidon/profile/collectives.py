"""Ring collectives: latency + size / bandwidth.

Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective communication operations in MPICH"; NVIDIA
nccl-tests, doc/PERFORMANCE.md (the factors of the bus bandwidth).
"""

from __future__ import annotations

from poseidon.inputs.links import Link


def bytes_per_ms(link: Link, num_senders: int) -> float:
    """What one device gets of a link in one direction while `num_senders` devices of its node send."""
    return link.per_device_gbps(num_senders) * 1e9 / 8 / 1e3


def transfer_ms(num_bytes: float, link: Link, num_senders: int = 1) -> float:
    """Time of one message from device to device."""
    return link.latency_us / 1e3 + num_bytes / bytes_per_ms(link, num_senders)


def all_gather_ms(num_bytes: float, ranks: int, link: Link, num_senders: int = 1, efficiency: float = 1.0) -> float:
    """Ring all-gather to `num_bytes` on each rank: ranks - 1 steps of bytes / ranks; a reduce-scatter takes as long."""
    rate = bytes_per_ms(link, num_senders) * efficiency
    return (ranks - 1) * (link.latency_us / 1e3 + num_bytes / ranks / rate)


def all_reduce_ms(num_bytes: float, ranks: int, link: Link, num_senders: int = 1, efficiency: float = 1.0) -> float:
    """Ring all-reduce: 2 (ranks - 1) / ranks x bytes / bandwidth + 2 (ranks - 1) x latency."""
    return 2 * all_gather_ms(num_bytes, ranks, link, num_senders, efficiency)
