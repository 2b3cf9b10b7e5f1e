"""The training job that a command line describes, in the fields of `poseidon.inputs.Training`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.launch.arguments import Arguments
from poseidon.launch.framework import Framework
from poseidon.launch.read_model import needed

TRAINING_FLAGS = (
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--micro-batch-size",
    "--global-batch-size",
    "--seq-length",
    "--sequence-parallel",
    "--use-distributed-optimizer",
    "--bf16",
    "--fp16",
)
"""Flags that decide on the job, or that a plan sets: none may be misspelt."""
MICRO_BATCH_SIZES = (1, 2, 4)
"""The sizes to choose from beside the user's own, as `poseidon search` has them."""


@dataclass(frozen=True)
class Degrees:
    """The degrees that the user's flags ask for."""

    tp: int
    pp: int

    @classmethod
    def of(cls, arguments: Arguments) -> Degrees:
        """From the flags; 1 is Megatron-LM's default."""
        return cls(
            arguments.count("--tensor-model-parallel-size") or 1,
            arguments.count("--pipeline-model-parallel-size") or 1,
        )


def training_fields(arguments: Arguments, framework: Framework, world_size: int) -> dict[str, Any]:
    """All fields but recomputation, schedules and chunks; InputError where a flag is missing or contradicts another."""
    degrees = Degrees.of(arguments)
    micro_batch = needed(arguments, "--micro-batch-size")
    batch = _global_batch_size(arguments, degrees, micro_batch, world_size)
    sizes = sorted({size for size in (*MICRO_BATCH_SIZES, micro_batch) if size and batch % size == 0})
    precision = _precision(arguments)
    return {
        "global_batch_size": batch,
        "seq_length": needed(arguments, "--seq-length", "--encoder-seq-length"),
        "micro_batch_sizes": sizes or [micro_batch],
        "precision": precision,
        "gradient_precision": _gradient_precision(arguments, precision),
        "distributed_optimizer": arguments.has("--use-distributed-optimizer"),
        # With TP 1 the flag means nothing, so its absence says nothing about a plan with more.
        "sequence_parallel": arguments.has("--sequence-parallel") or degrees.tp == 1,
        "flash_attention": has_fused_attention(arguments, framework),
        **_fusions(arguments, framework),
        "tp_overlap": any(map(arguments.has, ("--tp-comm-overlap", "--use-mc2", "--use-ascend-mc2"))),
    }


def _global_batch_size(arguments: Arguments, degrees: Degrees, micro_batch: int, world_size: int) -> int:
    """--global-batch-size; without it one micro-batch on each replica, as Megatron-LM has it."""
    given = arguments.count("--global-batch-size")
    if given is not None:
        return given
    model_parallel = degrees.tp * degrees.pp
    if model_parallel == 0 or world_size % model_parallel:
        message = (
            f"is missing, and TP {degrees.tp} x PP {degrees.pp} does not divide the {world_size} devices, so that "
            "there is no default either"
        )
        raise InputError(Mistake("--global-batch-size", "", message))
    return micro_batch * (world_size // model_parallel)


def _precision(arguments: Arguments) -> str:
    given = [name for name in ("bf16", "fp16") if arguments.has(f"--{name}")]
    if len(given) == 1:
        return given[0]
    message = "and --fp16 exclude each other" if given else "or --fp16 is missing: plans are for 16-bit training"
    raise InputError(Mistake("--bf16", "", message))


def _gradient_precision(arguments: Arguments, precision: str) -> str:
    """fp32 with bf16 unless --grad-reduce-in-bf16; as the weights with fp16 unless they are accumulated in fp32."""
    if precision == "bf16":
        return "bf16" if arguments.has("--grad-reduce-in-bf16") else "fp32"
    return "fp32" if arguments.has("--accumulate-allreduce-grads-in-fp32") else "fp16"


def has_fused_attention(arguments: Arguments, framework: Framework) -> bool:
    """Whether attention is one kernel: asked for on Ascend, the default of Transformer Engine otherwise."""
    if arguments.has("--use-flash-attn"):
        return True
    backend, implementation = arguments.text("--attention-backend"), arguments.text("--transformer-impl")
    return not framework.is_ascend and backend not in ("unfused", "local") and implementation != "local"


def _fusions(arguments: Arguments, framework: Framework) -> dict[str, bool]:
    """Megatron-LM's fused kernels can be switched off, MindSpeed's must be asked for."""
    rotary = not arguments.has("--no-rope-fusion")
    activation = not arguments.has("--no-bias-swiglu-fusion")
    if framework.is_ascend:
        rotary = arguments.has("--use-fused-rotary-pos-emb")
        activation = arguments.has("--use-fused-swiglu")
    accumulation = not arguments.has("--no-gradient-accumulation-fusion")
    return {
        "fused_rotary": rotary,
        "fused_activation": activation,
        "fused_gradient_accumulation": accumulation or arguments.has("--gemm-gradient-accumulation-fusion"),
    }
