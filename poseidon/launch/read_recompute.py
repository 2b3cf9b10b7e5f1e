"""What a command line recomputes, as a plan counts it."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.errors import InputError, Mistake
from poseidon.inputs.training import Recompute
from poseidon.launch.arguments import Arguments

RECOMPUTE_FLAGS = (
    "--recompute-granularity",
    "--recompute-method",
    "--recompute-num-layers",
    "--recompute-modules",
    "--recompute-activations",
    "--recompute-activation-function",
    "--recompute-activation-function-num-layers",
    "--recompute-norm",
    "--recompute-norm-num-layers",
    "--enable-recompute-layers-per-pp-rank",
)
INSTEAD = "choose what a plan counts with poseidon launch --recompute none (selective, full, or auto) -- ..."


@dataclass(frozen=True)
class Recomputation:
    """How a plan counts it, and whether the user's flags already say just that."""

    mode: Recompute
    stays: bool
    """The flags may stay as they are when the plan has this mode."""
    note: str = ""


def recomputation_of(arguments: Arguments, *, fused_attention: bool, only_experts: bool) -> Recomputation:
    """The flags' meaning; InputError where a plan doesn't count it."""
    granularity = arguments.text("--recompute-granularity")
    if granularity is None and arguments.has("--recompute-activations"):
        granularity = "selective"
    if granularity == "full":
        return _full(arguments)
    if granularity == "selective":
        return _selective(arguments, fused_attention, only_experts)
    if granularity is not None:
        raise InputError(Mistake("--recompute-granularity", "", f"{granularity[:40]!r} is neither full nor selective"))
    return _mindspeed(arguments)


def _full(arguments: Arguments) -> Recomputation:
    """Layer by layer in all layers, which is what plans count: uniform with groups of one layer."""
    method, count = arguments.text("--recompute-method"), arguments.count("--recompute-num-layers")
    if method == "uniform":
        return Recomputation("full", stays=count == 1)
    message = f"{method or 'no method'} recomputes some of a stage's layers, and a plan counts all or none; {INSTEAD}"
    raise InputError(Mistake("--recompute-method", "", message))


def _selective(arguments: Arguments, fused_attention: bool, only_experts: bool) -> Recomputation:
    modules = set(arguments.values("--recompute-modules")) or {"core_attn"}
    if modules == {"core_attn"} and not fused_attention:
        return Recomputation("selective", stays=True)
    if modules == {"core_attn"}:
        note = (
            "recomputing the attention core saves no memory where attention is fused; the flags stay, and its time is "
            "not in the plan"
        )
        return Recomputation("none", stays=True, note=note)
    if modules - {"core_attn"} == {"layernorm", "moe_act"} and only_experts and fused_attention:
        return Recomputation("selective", stays=True)
    listed = " ".join(sorted(modules))
    raise InputError(Mistake("--recompute-modules", "", f"a plan does not count {listed[:80]}; {INSTEAD}"))


def _mindspeed(arguments: Arguments) -> Recomputation:
    """MindSpeed's recomputation of norms and activation functions: both of all layers are what plans call selective."""
    parts = ("--recompute-activation-function", "--recompute-norm")
    given = [part for part in parts if arguments.has(part)]
    limited = [f"{part}-num-layers" for part in parts if arguments.has(f"{part}-num-layers")]
    if not given:
        return Recomputation("none", stays=True)
    if len(given) == len(parts) and not limited:
        return Recomputation("selective", stays=True)
    flag = (limited or given)[0]
    raise InputError(Mistake(flag, "", f"recomputes less than what a plan calls selective; {INSTEAD}"))
