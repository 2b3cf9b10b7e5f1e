"""The analytic profile: every row from formulas (docs/profile.md), for clusters that nobody has measured yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.links import Link
from poseidon.inputs.model import LayerType, Model
from poseidon.inputs.training import Recompute, Training
from poseidon.profile.calibration import DEFAULT_CALIBRATION, Calibration, calibration_of
from poseidon.profile.collectives import all_gather_ms, all_reduce_ms, bytes_per_ms
from poseidon.profile.degrees import tp_degrees
from poseidon.profile.layer import kept_activation_bytes, layer_operations, recomputed_bytes
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.operation import Operation
from poseidon.profile.optimizer_step import accumulation_ms, update_ms
from poseidon.profile.profile import LayerKey, Profile, Row, RowKey
from poseidon.profile.timing import DeviceRates, backward_ms, device_rates, forward_ms
from poseidon.profile.vocabulary import embedding_operations, head_operations

REGIONS_PER_LAYER = 2
"""Tensor-parallel regions of a layer: attention and MLP (Shoeybi et al. 2019, arXiv 1909.08053, section 3)."""


@dataclass(frozen=True)
class Device:
    """One accelerator: its rates, its link inside a node, and how many devices of the node send at once."""

    rates: DeviceRates
    link: Link
    num_senders: int
    calibration: Calibration


def analytic_profile(
    experiment: Experiment,
    *,
    recompute: Sequence[Recompute] | None = None,
    calibration: Calibration = DEFAULT_CALIBRATION,
) -> Profile:
    """Rows for every accelerator, TP degree that its nodes allow, and micro-batch size of the experiment.

    `recompute` lists the modes to cover (default: the experiment's). Raises InputError for fp32 training.
    """
    model, training = experiment.model, experiment.training
    if training.precision == "fp32":
        message = "the analytic profile is for 16-bit training: use bf16 or fp16, or give a profile file"
        raise InputError(Mistake(experiment.name, "training.precision", message))
    modes = training.recompute_modes if recompute is None else recompute
    layers: dict[LayerKey, Row] = {}
    embedding: dict[RowKey, Row] = {}
    head: dict[RowKey, Row] = {}
    for size in training.micro_batch_sizes:
        for name, tp in _placements(model, experiment.cluster):
            batch = _micro_batch(training, size, tp)
            device = device_of(experiment.cluster, name, calibration)
            key = RowKey(name, tp, size)
            for layer_type in model.distinct_layer_types:
                rows = layer_rows(model, layer_type, batch, device, modes)
                rows = tuple(_with_state_traffic(row, training, device) for row in rows)
                layers |= {LayerKey(key, layer_type, mode): row for mode, row in zip(modes, rows, strict=True)}
            embedding[key] = _with_state_traffic(embedding_row(model, batch, device), training, device)
            head[key] = _with_state_traffic(head_row(model, batch, device), training, device)
    source = "analytic: FLOPs, memory traffic and ring collectives (docs/profile.md)"
    return Profile(model.name, training.seq_length, training.precision, source, layers, embedding, head)


def _with_state_traffic(row: Row, training: Training, device: Device) -> Row:
    """The row with what its gradients and its optimizer state take, beside the products that make the gradients."""
    return replace(
        row,
        backward_ms=row.backward_ms + accumulation_ms(row.weight_bytes, training, device.rates),
        update_ms=update_ms(row.weight_bytes, training, device.rates),
    )


def _micro_batch(training: Training, size: int, tp: int) -> MicroBatch:
    return MicroBatch(
        size,
        training.seq_length,
        tp,
        training.sequence_parallel,
        training.flash_attention,
        training.fused_rotary,
        training.fused_activation,
        training.tp_overlap,
    )


def _placements(model: Model, cluster: Cluster) -> Iterable[tuple[str, int]]:
    for name in dict.fromkeys(group.accelerator for group in cluster.nodes):
        for tp in tp_degrees(model, cluster, name):
            yield name, tp


def device_of(cluster: Cluster, accelerator: str, calibration: Calibration = DEFAULT_CALIBRATION) -> Device:
    """The device of an accelerator: where its node groups differ in their intra-node links, the slowest one counts.

    All TP groups of a node are taken to communicate at the same time: a link that the node shares is shared by all its
    devices.
    """
    groups = [group for group in cluster.nodes if group.accelerator == accelerator]
    slowest = min(groups, key=lambda group: bytes_per_ms(cluster.intra_node_link(group), group.devices))
    type_of_device = cluster.accelerators[accelerator]
    own = calibration_of(type_of_device, calibration)
    return Device(device_rates(type_of_device, own), cluster.intra_node_link(slowest), slowest.devices, own)


def layer_rows(
    model: Model, layer_type: LayerType, batch: MicroBatch, device: Device, modes: Sequence[Recompute]
) -> tuple[Row, ...]:
    """One layer's rows, one for each recomputation mode."""
    operations = layer_operations(model, layer_type, batch)
    communication_ms = REGIONS_PER_LAYER * _region_ms(model, batch, device)
    forward_exposed, backward_exposed = _exposed_ms(operations, communication_ms, batch, device)
    forward = forward_ms(operations, device.rates) + forward_exposed
    backward = backward_ms(operations, device.rates) + backward_exposed
    weight_bytes = model.layer_parameters(layer_type) * ELEMENT_BYTES / batch.tp
    return tuple(
        Row(
            forward_ms=forward,
            backward_ms=backward + _replay_ms(operations, forward, device, mode),
            weight_bytes=weight_bytes,
            activation_bytes=kept_activation_bytes(operations, model, batch, mode),
            recomputed_bytes=recomputed_bytes(operations, model, batch, mode),
        )
        for mode in modes
    )


def _exposed_ms(
    operations: tuple[Operation, ...], communication_ms: float, batch: MicroBatch, device: Device
) -> tuple[float, float]:
    """TP communication of the forward and of the backward pass that computation doesn't hide.

    Where it is overlapped, collectives and matrix products go in one piece for each TP rank; a piece is hidden by the
    product of another one, the first piece by none (Wang et al. 2023, "Overlap Communication with Dependent Computation
    via Decomposition", ASPLOS).
    """
    if not batch.tp_overlap:
        return communication_ms, device.calibration.backward_exposed_share * communication_ms
    products = [operation for operation in operations if operation.has_weights]
    piece = 1 / batch.tp
    forward, backward = (
        max(piece * communication_ms, communication_ms - (1 - piece) * products_ms)
        for products_ms in (forward_ms(products, device.rates), backward_ms(products, device.rates))
    )
    return forward, backward


def _replay_ms(operations: tuple[Operation, ...], forward: float, device: Device, recompute: Recompute) -> float:
    """What recomputation adds to the backward pass: the whole forward pass, or the operations that are replayed."""
    if recompute == "full":
        return forward
    if recompute == "selective":
        return forward_ms((operation for operation in operations if operation.replayed), device.rates)
    return 0.0


def _region_ms(model: Model, batch: MicroBatch, device: Device) -> float:
    """Communication of one tensor-parallel region in one direction: an all-reduce of the micro-batch's activation.

    With sequence parallelism it is an all-gather and a reduce-scatter, which together take as long (Korthikanti et al.
    2022, section 4.2.2).
    """
    return all_reduce_ms(_stream_bytes(model, batch), batch.tp, device.link, device.num_senders, _efficiency(device))


def _half_region_ms(model: Model, batch: MicroBatch, device: Device) -> float:
    return all_gather_ms(_stream_bytes(model, batch), batch.tp, device.link, device.num_senders, _efficiency(device))


def _stream_bytes(model: Model, batch: MicroBatch) -> float:
    return batch.tokens * model.hidden_size * ELEMENT_BYTES


def _efficiency(device: Device) -> float:
    return device.calibration.collective_efficiency


def embedding_row(model: Model, batch: MicroBatch, device: Device) -> Row:
    """The embedding, whose output is all-reduced over TP.

    With sequence parallelism it is reduce-scattered, and its gradient gathered.
    """
    operations = embedding_operations(model, batch)
    half = _half_region_ms(model, batch, device)
    return Row(
        forward_ms=forward_ms(operations, device.rates) + (half if batch.sequence_parallel else 2 * half),
        backward_ms=backward_ms(operations, device.rates) + (half if batch.sequence_parallel else 0.0),
        weight_bytes=model.embedding_parameters * ELEMENT_BYTES / batch.tp,
        activation_bytes=sum(operation.kept.total for operation in operations),
    )


def head_row(model: Model, batch: MicroBatch, device: Device) -> Row:
    """The head: its input is gathered over TP (sequence parallelism), the gradient of its input reduced.

    The weights are those of a stage that holds them alone: a tied matrix is counted here too.
    """
    operations = head_operations(model, batch)
    half = _half_region_ms(model, batch, device)
    tied = model.output_projection_parameters if model.tied_embeddings else 0
    return Row(
        forward_ms=forward_ms(operations, device.rates) + (half if batch.sequence_parallel else 0.0),
        backward_ms=backward_ms(operations, device.rates) + (half if batch.sequence_parallel else 2 * half),
        weight_bytes=(model.head_parameters + tied) * ELEMENT_BYTES / batch.tp,
        activation_bytes=sum(operation.kept.total for operation in operations),
    )
