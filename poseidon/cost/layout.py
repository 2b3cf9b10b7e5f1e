"""Layouts: DP and TP degrees with the stages that they cut the cluster into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from poseidon.cost.placement import AlikeNodes, Placement, place
from poseidon.cost.refusal import Cause, Refusal
from poseidon.inputs.experiment import Experiment
from poseidon.profile.degrees import tp_degrees, tp_refusal


@dataclass(frozen=True)
class Layout:
    """Stages of D x TP devices: what the batch and the schedule are then chosen for."""

    dp: int
    tp: int
    """Of all stages; 0 where it differs between accelerators or stages."""
    num_stages: int
    placements: tuple[Placement, ...]
    is_exact: bool = True
    """Whether exactly the placements' stages are used; else at most these, `num_stages` in all."""
    is_given: bool = False
    """Whether the stages were given one by one (`given_stages`): DP may differ between placements, `dp` is that of the
    first stage.
    """

    @property
    def shares_devices(self) -> bool:
        """Whether several kinds draw from the same devices (TP chosen stage by stage)."""
        first_nodes = [placement.parts[0].nodes[0] for placement in self.placements]
        return len(set(first_nodes)) < len(first_nodes)


def exact_layouts(experiment: Experiment, pools: Sequence[AlikeNodes]) -> Iterator[Layout | Refusal]:
    """Layouts that use every device, with one TP degree for all accelerators or one for each."""
    for tp_of in _tp_assignments(experiment, pools):
        if isinstance(tp_of, Refusal):
            yield tp_of
            continue
        common = next(iter(tp_of.values())) if len(set(tp_of.values())) == 1 else 0
        for dp in dp_degrees(experiment, pools, tp_of):
            yield _exact_layout(experiment, pools, dp, common, tp_of)


def _exact_layout(
    experiment: Experiment, pools: Sequence[AlikeNodes], dp: int, common: int, tp_of: Mapping[str, int]
) -> Layout | Refusal:
    placements = place(pools, dp, tp_of)
    if isinstance(placements, str):
        return Refusal(Cause.NODES, placements, dp, common)
    num_stages = sum(placement.num_stages for placement in placements)
    if reason := stages_refusal(experiment, num_stages, f"DP {dp}, TP {common or 'mixed'}"):
        return Refusal(Cause.STAGES, reason, dp, common, num_stages)
    return Layout(dp, common, num_stages, placements)


def stages_refusal(experiment: Experiment, num_stages: int, label: str) -> str | None:
    """Why this number of stages is refused."""
    num_layers, fixed = experiment.model.num_layers, experiment.search.fixed_pp
    if fixed is not None and num_stages != fixed:
        return f"{label} makes {num_stages} stages, not the {fixed} of search.fixed_pp"
    if num_stages > num_layers:
        return f"{label} makes {num_stages} stages, more than the model's {num_layers} layers"
    return None


def uniform_tp(experiment: Experiment) -> bool:
    """Whether all stages have the same TP degree; Megatron-LM can't run anything else."""
    return experiment.search.tp == "uniform" or experiment.search.target == "megatron"


def _tp_assignments(experiment: Experiment, pools: Sequence[AlikeNodes]) -> Iterator[Mapping[str, int] | Refusal]:
    """TP degrees of the accelerators; a uniform one that the model refuses comes as a refusal."""
    fixed = experiment.search.fixed_tp
    accelerators = list(dict.fromkeys(pool.group.accelerator for pool in pools))
    if uniform_tp(experiment):
        largest = max(pool.group.devices for pool in pools)
        divisors = {tp for pool in pools for tp in divisors_of(pool.group.devices)}
        for tp in [fixed] if fixed is not None else sorted(divisors):
            if reason := tp_refusal(experiment.model, tp):
                yield Refusal(Cause.MODEL, reason, tp=tp)
            elif tp <= largest:
                yield dict.fromkeys(accelerators, tp)
        return
    degrees = [tp_degrees(experiment.model, experiment.cluster, name) for name in accelerators]
    for combination in product(*degrees):
        if fixed is None or set(combination) == {fixed}:
            yield dict(zip(accelerators, combination, strict=True))


def dp_degrees(experiment: Experiment, pools: Sequence[AlikeNodes], tp_of: Mapping[str, int]) -> list[int]:
    """DP degrees that share out the devices of every accelerator and cluster evenly over stages."""
    totals: dict[tuple[str, str], int] = {}
    for pool in pools:
        key = (pool.group.accelerator, pool.group.cluster)
        totals[key] = totals.get(key, 0) + pool.num_devices
    common = gcd(*(total // tp_of[name] for (name, _), total in totals.items() if total % tp_of[name] == 0))
    fixed = experiment.search.fixed_dp
    return [fixed] if fixed is not None else divisors_of(max(common, 1))


def divisors_of(number: int) -> list[int]:
    """All divisors, ascending."""
    small = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})
