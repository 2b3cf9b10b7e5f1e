"""Problems from an experiment and a profile: every cost of an outer choice, worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from poseidon.cost.communication import Communication, activation_bytes, gradient_bytes
from poseidon.cost.layer_limits import DeviceMemory, Limits, layer_limits
from poseidon.cost.memory import memory_budget, part_memory
from poseidon.cost.outer import OuterChoice
from poseidon.cost.part_rows import PartRows, part_rows
from poseidon.cost.pipeline_shape import PipelineShape
from poseidon.cost.placement import Placement
from poseidon.cost.problem import Kind, LayerCost, Matrix, Pool, Problem
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.training import Recompute
from poseidon.profile.profile import Profile, Row, RowKey
from poseidon.schedule.adaptive_one_f_one_b import hiding_depth

MOST_DEPTH = 4
"""Deepest link of adaptive_1f1b that is searched; every further step only costs memory where transfers are already
hidden.
"""
PlacementKey = tuple[tuple[int, ...], int, int]


@dataclass(frozen=True)
class KindCosts:
    """Times of a kind, whatever its place in the pipeline."""

    layers: tuple[LayerCost, ...]
    first: LayerCost
    last: LayerCost
    last_alone: LayerCost


class ProblemBuilder:
    """Builds the problems of one experiment; what several outer choices share is worked out once."""

    def __init__(self, experiment: Experiment, profile: Profile) -> None:
        """The profile must have a row for everything that the choices need (see `require_rows`)."""
        self.experiment = experiment
        self.profile = profile
        model, training = experiment.model, experiment.training
        self._communication = Communication(experiment.cluster, profile, training.sequence_parallel)
        self._type_names: tuple[str, ...] = model.distinct_layer_types
        self._layer_types = tuple(self._type_names.index(name) for name in model.layer_types)
        self._rows: dict[tuple[str, int, int, Recompute], PartRows] = {}
        self._memories: dict[tuple[str, int, int, int, Recompute], DeviceMemory] = {}
        self._limits: dict[tuple[str, int, int, int, Recompute, PipelineShape, int], Limits] = {}
        self._costs: dict[tuple[PlacementKey, int, Recompute], KindCosts] = {}
        self._transfers: dict[tuple[PlacementKey, PlacementKey, int], tuple[float, float]] = {}
        self._matrices: dict[tuple[tuple[PlacementKey, ...], int], tuple[Matrix, Matrix]] = {}

    def build(self, choice: OuterChoice) -> Problem:
        """The problem of one outer choice."""
        intra_node_ms, inter_node_ms = self._transfer_matrices(choice)
        mixed = len(self._type_names) > 1
        return Problem(
            name=choice.name,
            schedule=choice.schedule,
            num_chunks=choice.num_chunks,
            num_micro_batches=choice.num_micro_batches,
            num_layers=self.experiment.model.num_layers,
            num_stages=choice.num_stages,
            assignment=self.experiment.search.assignment,
            kinds=tuple(self._kind(choice, placement) for placement in choice.layout.placements),
            intra_node_ms=intra_node_ms,
            inter_node_ms=inter_node_ms,
            layer_types=self._layer_types if mixed else (),
            layer_type_names=self._type_names if mixed else ("layer",),
            pools=_pools(choice) if choice.layout.shares_devices else (),
            allow_idle=self.experiment.search.allow_idle,
            most_depth=self._most_depth(choice),
        )

    def _kind(self, choice: OuterChoice, placement: Placement) -> Kind:
        costs = self._kind_costs(choice, placement)
        shares = choice.layout.shares_devices
        return Kind(
            name=placement.name,
            stages=placement.num_stages,
            stages_per_node=placement.stages_per_node,
            layers=costs.layers,
            first=costs.first,
            last=costs.last_alone if choice.num_stages == 1 else costs.last,
            max_layers=self._layer_limits(choice, placement),
            pool=_pool_name(placement) if shares else "",
            devices=placement.devices_per_stage if shares else 1,
        )

    def rows(self, choice: OuterChoice, placement: Placement) -> PartRows:
        """The profile rows of a kind."""
        size = choice.micro_batch_of(placement)
        key = (placement.accelerator, placement.tp, size, choice.recompute)
        if key not in self._rows:
            at = RowKey(placement.accelerator, placement.tp, size)
            self._rows[key] = part_rows(self.profile, self.experiment, at, choice.recompute)
        return self._rows[key]

    def device_memory(self, choice: OuterChoice, placement: Placement) -> DeviceMemory:
        """What the model's parts take on one device of a kind."""
        key = self._memory_key(choice, placement)
        if key not in self._memories:
            rows = self.rows(choice, placement)
            training = self.experiment.training
            budget = memory_budget(
                self.experiment.cluster.accelerators[placement.accelerator],
                training,
                self.experiment.search.max_memory_fraction,
            )
            layers, embedding, head, head_alone = (
                tuple(part_memory(row, placement.dp, training) for row in part)
                for part in (rows.layers, (rows.embedding,), (rows.head,), (rows.head_alone,))
            )
            self._memories[key] = DeviceMemory(layers, embedding[0], head[0], head_alone[0], budget.free_bytes)
        return self._memories[key]

    def _memory_key(self, choice: OuterChoice, placement: Placement) -> tuple[str, int, int, int, Recompute]:
        size = choice.micro_batch_of(placement)
        return (placement.accelerator, placement.tp, size, placement.dp, choice.recompute)

    def _layer_limits(self, choice: OuterChoice, placement: Placement) -> Limits:
        most_depth = self._most_depth(choice)
        key = (*self._memory_key(choice, placement), choice.shape, most_depth)
        if key not in self._limits:
            memory = self.device_memory(choice, placement)
            self._limits[key] = layer_limits(memory, choice.shape, self._layer_types, most_depth)
        return self._limits[key]

    def _most_depth(self, choice: OuterChoice) -> int:
        """Largest depth of a link worth trying: what hides the slowest link behind an even stage of the fastest kind.

        At least 2, so that Eager 1F1B is among the choices, at most `MOST_DEPTH`.
        """
        if choice.schedule != "adaptive_1f1b" or choice.num_stages == 1:
            return 1
        layers = self.experiment.model.num_layers / choice.num_stages
        costs = [cost for placement in choice.layout.placements for cost in self._kind_costs(choice, placement).layers]
        fastest = min(costs, key=lambda cost: cost.forward_ms + cost.backward_ms)
        times = [time for matrix in self._transfer_matrices(choice) for row in matrix for time in row if isfinite(time)]
        wanted = hiding_depth(max(times, default=0.0), layers * fastest.forward_ms, layers * fastest.backward_ms)
        return min(max(wanted, 2), MOST_DEPTH)

    def _kind_costs(self, choice: OuterChoice, placement: Placement) -> KindCosts:
        key = (placement.key, choice.micro_batch_of(placement), choice.recompute)
        if key not in self._costs:
            rows = self.rows(choice, placement)
            self._costs[key] = KindCosts(
                layers=tuple(self._layer_cost(row, placement) for row in rows.layers),
                first=self._layer_cost(rows.embedding, placement),
                last=self._layer_cost(rows.head, placement),
                last_alone=self._layer_cost(rows.head_alone, placement),
            )
        return self._costs[key]

    def _layer_cost(self, row: Row, placement: Placement) -> LayerCost:
        size = gradient_bytes(row.weight_bytes, self.experiment.training.parameter_bytes)
        all_reduce = self._communication.all_reduce_ms(placement, size)
        sharded = placement.dp if self.experiment.training.distributed_optimizer else 1
        return LayerCost(row.forward_ms, row.backward_ms, all_reduce + row.update_ms / sharded)

    def _transfer_matrices(self, choice: OuterChoice) -> tuple[Matrix, Matrix]:
        placements = choice.layout.placements
        key = (tuple(placement.key for placement in placements), choice.dp * choice.micro_batch_size)
        if key not in self._matrices:
            self._matrices[key] = self._matrices_of(choice, placements)
        return self._matrices[key]

    def _matrices_of(self, choice: OuterChoice, placements: Sequence[Placement]) -> tuple[Matrix, Matrix]:
        pairs = [[self._transfer(choice, sender, receiver) for receiver in placements] for sender in placements]
        intra_node = tuple(tuple(intra for intra, _ in row) for row in pairs)
        inter_node = tuple(tuple(inter for _, inter in row) for row in pairs)
        return intra_node, inter_node

    def _transfer(self, choice: OuterChoice, sender: Placement, receiver: Placement) -> tuple[float, float]:
        key = (sender.key, receiver.key, choice.micro_batch_of(sender))
        if key not in self._transfers:
            tokens = choice.micro_batch_of(sender) * self.experiment.training.seq_length
            element = self.experiment.training.parameter_bytes.weight
            size = activation_bytes(tokens, self.experiment.model.hidden_size, element)
            self._transfers[key] = (
                self._communication.intra_node_ms(sender, receiver, size),
                self._communication.inter_node_ms(sender, receiver, size),
            )
        return self._transfers[key]


def _pool_name(placement: Placement) -> str:
    return placement.name.rsplit("/", 1)[0]


def _pools(choice: OuterChoice) -> tuple[Pool, ...]:
    pools = {}
    for placement in choice.layout.placements:
        part = placement.parts[0]
        pools[_pool_name(placement)] = Pool(_pool_name(placement), part.num_devices, part.group.devices)
    return tuple(pools.values())
