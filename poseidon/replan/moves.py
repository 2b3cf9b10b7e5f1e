"""What each device of a new plan keeps, receives from which survivor, and can only load from a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from poseidon.inputs import Cluster, Link
from poseidon.replan.holdings import Holding, Key, Shard, State
from poseidon.replan.places import Device, Placed


@dataclass(frozen=True)
class Piece:
    """A shard, or a part of one, with its size."""

    part: int
    state: State
    shard: Shard
    num_bytes: float


@dataclass(frozen=True)
class Transfer:
    """A piece that a device receives from a survivor that has it."""

    piece: Piece
    source: Device


@dataclass(frozen=True)
class DeviceMoves:
    """What one device of the new plan does to have all that it needs."""

    device: Device
    kept: tuple[Piece, ...]
    received: tuple[Transfer, ...]
    loaded: tuple[Piece, ...]
    """What no survivor has."""

    @property
    def kept_bytes(self) -> float:
        """What stays."""
        return sum(piece.num_bytes for piece in self.kept)

    @property
    def received_bytes(self) -> float:
        """What comes from others."""
        return sum(transfer.piece.num_bytes for transfer in self.received)

    @property
    def loaded_bytes(self) -> float:
        """What only a checkpoint has."""
        return sum(piece.num_bytes for piece in self.loaded)


class _Sources:
    """Who has what, and how much each has been asked to send."""

    def __init__(self, kept: Mapping[Device, Holding], cluster: Cluster) -> None:
        self._groups = [group for group in cluster.nodes for _ in range(group.count)]
        self._cluster = cluster
        self._sent: dict[Device, float] = dict.fromkeys(kept, 0.0)
        self._holders: dict[Key, list[tuple[Device, Shard]]] = {}
        for device, holding in kept.items():
            for key, shard in holding.items():
                self._holders.setdefault(key, []).append((device, shard))

    def pieces(self, key: Key, wanted: Shard, to: Device, piece_bytes: float) -> Iterator[Transfer | Piece]:
        """A range cut into what can be received, each from one survivor, and what nobody has."""
        holders = [(device, shard) for device, shard in self._holders.get(key, ()) if shard.overlap(wanted)]
        first = wanted.first
        while first < wanted.end:
            covering = [(device, shard) for device, shard in holders if shard.first <= first < shard.end]
            if covering:
                source, shard = min(covering, key=lambda item: self._preference(item[0], to))
                end = min(shard.end, wanted.end)
            else:
                end = min([wanted.end, *(shard.first for _, shard in holders if shard.first > first)])
            piece = Piece(*key, Shard(first, end), (end - first) * piece_bytes)
            if covering:
                self._sent[source] += piece.num_bytes
                yield Transfer(piece, source)
            else:
                yield piece
            first = end

    def _preference(self, source: Device, to: Device) -> tuple[int, float, Device]:
        """The same node first, then the same cluster; among these whoever has sent least."""
        if source[0] == to[0]:
            distance = 0
        else:
            link = self._cluster.link_class_between(self._groups[source[0]], self._groups[to[0]])
            distance = 1 if link == "inter_node" else 2
        return (distance, self._sent[source], source)


def moves_of(placed: Placed, cluster: Cluster) -> tuple[DeviceMoves, ...]:
    """The moves of every device of the new plan; the places of `placed.wanted` are physical devices here."""
    sources = _Sources(placed.kept, cluster)
    return tuple(
        _device_moves(device, placed.kept.get(device, {}), wanted, placed.piece_bytes[device], sources)
        for device, wanted in placed.wanted.items()
    )


def _device_moves(
    device: Device, has: Holding, wanted: Holding, sizes: Mapping[Key, float], sources: _Sources
) -> DeviceMoves:
    kept: list[Piece] = []
    rest: list[Transfer | Piece] = []
    for key, shard in wanted.items():
        mine = has.get(key)
        if mine is not None and mine.overlap(shard):
            common = Shard(max(mine.first, shard.first), min(mine.end, shard.end))
            kept.append(Piece(*key, common, common.width * sizes[key]))
            missing = [Shard(shard.first, common.first), Shard(common.end, shard.end)]
        else:
            missing = [shard]
        for part in missing:
            if part.width:
                rest += sources.pieces(key, part, device, sizes[key])
    received = tuple(item for item in rest if isinstance(item, Transfer))
    return DeviceMoves(device, tuple(kept), received, tuple(item for item in rest if isinstance(item, Piece)))


class _Links:
    """The link between two nodes, or inside one; worked out once for each pair of node groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._group_of = [index for index, group in enumerate(cluster.nodes) for _ in range(group.count)]
        self._links: dict[tuple[int, int, bool], Link] = {}

    def between(self, node: int, other: int) -> Link:
        key = (self._group_of[node], self._group_of[other], node == other)
        if key not in self._links:
            groups = self._cluster.nodes[key[0]], self._cluster.nodes[key[1]]
            inside = node == other
            self._links[key] = (
                self._cluster.intra_node_link(groups[0]) if inside else self._cluster.link_between(*groups)
            )
        return self._links[key]


def transfers_ms(moves: Sequence[DeviceMoves], cluster: Cluster) -> float:
    """An estimate: all messages at once, so that the link that has most to carry decides.

    A device's link (the node's, where its devices share it) carries one direction in so many bytes over its bandwidth;
    inside a node and out of it are links apart. The largest latency is added once.
    """
    links = _Links(cluster)
    busy_ms: dict[tuple[int, int, bool, bool], float] = {}
    latency_ms = 0.0
    for device_moves in moves:
        to = device_moves.device
        for transfer in device_moves.received:
            source, inside = transfer.source, transfer.source[0] == to[0]
            link = links.between(source[0], to[0])
            latency_ms = max(latency_ms, link.latency_us / 1e3)
            took_ms = transfer.piece.num_bytes * 8 / (link.bandwidth_gbps * 1e6)
            for (node, device), is_sent in ((source, True), (to, False)):
                key = (node, -1 if link.shared_by == "node" else device, inside, is_sent)
                busy_ms[key] = busy_ms.get(key, 0.0) + took_ms
    return max(busy_ms.values(), default=0.0) + latency_ms
