"""Checks of a cluster that involve several of its fields; they read the raw mapping (see `FileModel`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon.inputs.file_model import Problem, is_count, nearest, shown

MAX_DEVICES = 1_000_000
"""Largest number of devices of a cluster."""


def cluster_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """All cross-field problems of a cluster's mapping."""
    groups = [(index, group) for index, group in enumerate(_sequence(data.get("nodes"))) if isinstance(group, Mapping)]
    accelerators = data.get("accelerators")
    declared = [name for name in accelerators if isinstance(name, str)] if isinstance(accelerators, Mapping) else []
    yield from _undeclared_accelerators(groups, declared)
    yield from _too_many_devices(groups)
    clusters = [group.get("cluster") or group.get("accelerator") for _, group in groups]
    names = sorted({name for name in clusters if isinstance(name, str)})
    yield from _cluster_link_problems(_sequence(data.get("cluster_links")), names)
    yield from _communication_problems(_sequence(data.get("communication")), accelerators)


def _sequence(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _undeclared_accelerators(groups: list[tuple[int, Mapping[str, Any]]], declared: list[str]) -> Iterator[Problem]:
    known = set(declared)
    for index, group in groups:
        name = group.get("accelerator")
        if isinstance(name, str) and known and name not in known:
            message = f"accelerator {shown(name)} is not declared; {_expected(name, declared)}"
            yield Problem(("nodes", index, "accelerator"), message)


def _expected(name: str, known: list[str]) -> str:
    suggestion = nearest(name, known)
    return f"did you mean {suggestion!r}?" if suggestion else f"`accelerators` has {', '.join(map(shown, known[:20]))}"


def _too_many_devices(groups: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Problem]:
    sizes = [(group.get("count"), group.get("devices")) for _, group in groups]
    total = sum(count * devices for count, devices in sizes if is_count(count) and is_count(devices))
    if total > MAX_DEVICES:
        yield Problem(
            ("nodes",), f"the nodes have {shown(total)} devices together; at most {MAX_DEVICES:,} are accepted"
        )


def _cluster_link_problems(pairs: list[Any], clusters: list[str]) -> Iterator[Problem]:
    seen: set[frozenset[str]] = set()
    known, listed = set(clusters), ", ".join(map(shown, clusters[:20]))
    for index, pair in enumerate(pairs):
        between = _sequence(pair.get("between")) if isinstance(pair, Mapping) else []
        if len(between) != 2 or not all(isinstance(name, str) for name in between):
            continue
        where = ("cluster_links", index, "between")
        for name in between:
            if name not in known:
                yield Problem(where, f"no node group stands in a cluster {shown(name)}; the clusters are {listed}")
        if between[0] == between[1]:
            yield Problem(where, "names one cluster twice; links inside a cluster are `links.inter_node`")
        elif frozenset(between) in seen:
            yield Problem(where, f"{shown(between[0])} and {shown(between[1])} are given twice")
        seen.add(frozenset(between))


def _communication_problems(sets: list[Any], accelerators: object) -> Iterator[Problem]:
    entries = accelerators.values() if isinstance(accelerators, Mapping) else ()
    vendors = [entry.get("vendor") for entry in entries if isinstance(entry, Mapping)]
    known = {vendor for vendor in vendors if isinstance(vendor, str)}
    has = f"they have {', '.join(map(shown, sorted(known)[:20]))}" if known else "none of them states a vendor"
    for index, names in enumerate(sets):
        for position, name in enumerate(_sequence(names)):
            if isinstance(name, str) and name not in known:
                message = f"no accelerator has the vendor {shown(name)}; {has}"
                yield Problem(("communication", index, position), message)
