"""What an iteration time means for the user: tokens per second and MFU."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.inputs.experiment import Experiment
from poseidon.plan.model_flops import flops_per_iteration
from poseidon.plan.plan import PlannedStage


def tokens_per_second(experiment: Experiment, iteration_time_ms: float) -> float:
    """Tokens of the global batch over the iteration time."""
    training = experiment.training
    return training.global_batch_size * training.seq_length / (iteration_time_ms / 1e3)


def model_flops_utilisation(experiment: Experiment, iteration_time_ms: float, stages: Sequence[PlannedStage]) -> float:
    """Model FLOPs of an iteration over what the devices in use could compute in its time at their peaks."""
    accelerators = experiment.cluster.accelerators
    peak_tflops = sum(stage.num_devices * accelerators[stage.accelerator].peak_tflops for stage in stages)
    return flops_per_iteration(experiment) / (peak_tflops * 1e12 * iteration_time_ms / 1e3)
