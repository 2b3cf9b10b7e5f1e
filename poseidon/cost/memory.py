"""Memory of a stage, term by term as in the contract.

Parameters: 2 bytes of weights, 4 of fp32 gradients, 12 of fp32 master weights and Adam moments (`ParameterBytes` has
other precisions); the last divided by DP with a distributed optimizer (Rajbhandari et al. 2020, arXiv 1910.02054,
section 3.1; Megatron-LM's distributed optimizer).
"""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.training import Training
from poseidon.profile.profile import Row

ROUNDING_BYTES = 0.5
"""Sums of bytes in floating point are compared up to this."""


@dataclass(frozen=True)
class StateBytes:
    """What a parameter takes on a device, in bytes: weight, gradient, optimizer state."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All three together."""
        return self.weights + self.gradients + self.optimizer


def state_bytes(weight_bytes: float, dp: int, training: Training) -> StateBytes:
    """Training state of the parameters whose weights take `weight_bytes` on the device (already divided by TP)."""
    each = training.parameter_bytes
    parameters = weight_bytes / each.weight
    sharded = dp if training.distributed_optimizer else 1
    return StateBytes(weight_bytes, parameters * each.gradient, parameters * each.optimizer / sharded)


@dataclass(frozen=True)
class MemoryBudget:
    """What a device of an accelerator has for a stage: the limit, and the reserve that counts towards it."""

    limit_bytes: float
    reserve_bytes: float

    @property
    def free_bytes(self) -> float:
        """What is left for layers and vocabulary."""
        return self.limit_bytes - self.reserve_bytes


def memory_budget(accelerator: Accelerator, training: Training, max_memory_fraction: float) -> MemoryBudget:
    """The limit is the usable memory x `max_memory_fraction`; the reserve a part of the usable memory, or as stated."""
    usable = float(accelerator.usable_memory_bytes)
    stated = training.memory_reserve_gb
    reserve = usable * training.memory_reserve_fraction if stated is None else stated * 1e9
    return MemoryBudget(usable * max_memory_fraction, reserve)


@dataclass(frozen=True)
class PartMemory:
    """One layer, the embedding or the head: state once, activations for each in-flight micro-batch, one
    recomputation."""

    state_bytes: float
    activation_bytes: float
    recomputed_bytes: float


def part_memory(row: Row, dp: int, training: Training) -> PartMemory:
    """The memory of a profile row."""
    state = state_bytes(row.weight_bytes, dp, training).total
    return PartMemory(state, row.activation_bytes, row.recomputed_bytes)


NOTHING = PartMemory(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class StageMemory:
    """Memory of one device of a finished stage, in bytes, by what takes it."""

    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    recomputed_bytes: float
    reserve_bytes: float
    limit_bytes: float
    in_flight: float
    """Largest number of micro-batches in flight (chunk activations / chunks)."""

    @property
    def total_bytes(self) -> float:
        """Everything together, the reserve included; fits when it is at most `limit_bytes`."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.recomputed_bytes
            + self.reserve_bytes
        )

    @property
    def fits(self) -> bool:
        """Whether the stage fits on its devices."""
        return self.total_bytes <= self.limit_bytes + ROUNDING_BYTES
