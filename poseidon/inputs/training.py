"""How the model is trained: batch, sequence, precision, and what the search may choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from poseidon.inputs.fields import Count, Switch
from poseidon.inputs.file_model import PROBLEM, FileModel, Problem, is_count, shown
from poseidon.inputs.parameter_bytes import FULL_PRECISION, MIXED_PRECISION, SIXTEEN_BIT_GRADIENTS, ParameterBytes

SIMULATED_SCHEDULES = ("zb_h1", "zb_h2", "zbv", "dualpipev")
"""Schedules that can be simulated but not searched: they split their backwards."""


def _searchable(name: Any) -> Any:
    """Refuses the schedules that are known but not searched with the reason; anything else is left to the choices."""
    if isinstance(name, str) and name.lower().replace("-", "_") in SIMULATED_SCHEDULES:
        message = (
            f"{shown(name)} splits its backwards, which the search cannot do: a stages file with it can be simulated "
            "(poseidon simulate)"
        )
        raise PydanticCustomError(PROBLEM, "{message}", {"message": message})
    return name


ScheduleName = Literal["1f1b", "eager_1f1b", "interleaved_1f1b", "gpipe", "adaptive_1f1b"]
Recompute = Literal["none", "selective", "full"]
RecomputeChoice = Literal["none", "selective", "full", "auto"]
Precision = Literal["bf16", "fp16", "fp32"]
GradientPrecision = Literal["bf16", "fp16", "fp32"]


class Training(FileModel):
    """The training job; lists are choices of the search."""

    global_batch_size: Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
    """Sequences of one iteration, over all pipelines."""
    seq_length: Count
    """Tokens of a sequence."""
    micro_batch_sizes: Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)] = (1, 2, 4)
    """Sequences of one micro-batch: the sizes to choose from."""
    schedules: Annotated[
        tuple[Annotated[ScheduleName, BeforeValidator(_searchable)], ...], Field(min_length=1, max_length=16)
    ] = ("1f1b",)
    """Pipeline schedules to choose from."""
    num_chunks: Annotated[
        tuple[Annotated[int, Field(strict=True, ge=2, le=64)], ...], Field(min_length=1, max_length=16)
    ] = (2,)
    """Chunks of layers per device of the interleaved schedule: the numbers to choose from."""
    precision: Precision = "bf16"
    """Of weights and activations: 2 bytes each, or 4 (fp32, which needs a measured profile)."""
    gradient_precision: GradientPrecision = "fp32"
    """In which weight gradients are kept and all-reduced."""
    recompute: RecomputeChoice = "none"
    """Activations that are recomputed in the backward pass: none, the cheap ones of a layer, or all of it; auto: the
    search chooses, per plan.
    """
    distributed_optimizer: Switch = True
    """Whether the optimizer state is sharded over data parallelism."""
    optimizer_step: Switch = False
    """Whether an iteration's time includes the optimizer's step (with a profile file: what its rows say)."""
    sequence_parallel: Switch = True
    """Whether norms and dropouts are split along the sequence within a TP group."""
    flash_attention: Switch = True
    """Whether attention is one fused kernel; else scores, softmax and context are kernels of their own."""
    fused_rotary: Switch = True
    """Whether rotary positions are applied by one kernel (Megatron-LM without --no-rope-fusion)."""
    fused_activation: Switch = True
    """Whether the activation of a gated MLP is one kernel (Megatron-LM without --no-bias-swiglu-fusion)."""
    fused_gradient_accumulation: Switch = True
    """Whether the product that makes a weight's gradient also adds it up (Megatron-LM without
    --no-gradient-accumulation-fusion)."""
    tp_overlap: Switch = False
    """Whether TP communication is overlapped with the matrix products it feeds (Megatron-LM's --tp-comm-overlap,
    MindSpeed's --use-mc2)."""
    memory_reserve_fraction: Annotated[float, Field(strict=True, ge=0, le=0.9)] = 0.08
    """Part of a device's memory that is left free (fragmentation, workspaces, communication buffers)."""
    memory_reserve_gb: Annotated[float, Field(strict=True, ge=0, le=1e6)] | None = None
    """What is left free instead, 1e9 bytes: what a process was measured to hold beside its tensors."""

    @property
    def parameter_bytes(self) -> ParameterBytes:
        """What a parameter takes on a device that shares it with no other."""
        if self.precision == "fp32":
            return FULL_PRECISION
        return MIXED_PRECISION if self.gradient_precision == "fp32" else SIXTEEN_BIT_GRADIENTS

    @property
    def recompute_modes(self) -> tuple[Recompute, ...]:
        """The recomputation modes that the search may choose from."""
        return ("none", "selective", "full") if self.recompute == "auto" else (self.recompute,)

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """Some micro-batch size divides the global batch, and no choice is listed twice."""
        batch, sizes = data.get("global_batch_size"), data.get("micro_batch_sizes", (1, 2, 4))
        sizes = sizes if isinstance(sizes, list | tuple) else ()
        if is_count(batch) and sizes and all(is_count(size) and batch % size for size in sizes):
            listed = ", ".join(map(shown, sizes[:20]))
            message = (
                f"{batch} is not divisible by any DP x micro-batch: none of micro_batch_sizes ({listed}) divides it"
            )
            yield Problem(("global_batch_size",), message)
        for key in ("micro_batch_sizes", "schedules", "num_chunks"):
            yield from _repeated(key, data.get(key))


def _repeated(key: str, values: object) -> Iterator[Problem]:
    listed = values if isinstance(values, list | tuple) else ()
    seen: set[int | str] = set()
    for index, value in enumerate(listed):
        if isinstance(value, int | str) and value in seen:
            yield Problem((key, index), f"{shown(value)} is listed twice")
        if isinstance(value, int | str):
            seen.add(value)
