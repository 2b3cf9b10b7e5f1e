"""What an exporter is given: a plan whose layout is valid, and what the user said about the framework and the hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import NodeGroup
from poseidon.inputs.experiment import Experiment
from poseidon.plan.check_layout import check_devices, check_layers, check_neighbours, check_settings
from poseidon.plan.finding import Verdict
from poseidon.plan.plan import Pipeline, Plan

Version = tuple[int, ...]

_VERSION = re.compile(r"(?:core_r|core_v|v|r)?(\d{1,6}(?:\.\d{1,6}){0,3})")
HOST_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[?[0-9A-Fa-f:.]{2,45}\]?")
"""Names and addresses of hosts; none begins with a dash, so none is ever taken for an option."""


@dataclass(frozen=True)
class Request:
    """One export. `hosts` has a name or address for each node of the cluster, in the order of its nodes, or none."""

    plan: Plan
    file: str
    """The plan's file, as errors call it."""
    version: Version
    hosts: tuple[str, ...] = ()

    @property
    def pipeline(self) -> Pipeline:
        """The configuration to export."""
        return self.plan.pipeline

    @property
    def experiment(self) -> Experiment:
        """What the plan was made for."""
        return self.plan.experiment

    @cached_property
    def node_groups(self) -> tuple[NodeGroup, ...]:
        """The group of each node of the cluster."""
        return tuple(group for group in self.experiment.cluster.nodes for _ in range(group.count))

    def host(self, node: int) -> str:
        """The node's host, or what stands for it where hosts are not known."""
        return self.hosts[node] if self.hosts else f"node{node}"

    def vendor(self, node: int) -> str | None:
        """Who made the node's accelerators."""
        return self.experiment.cluster.accelerator_of(self.node_groups[node]).vendor

    def mistake(self, field: str, message: str) -> Mistake:
        """A mistake of the plan."""
        return Mistake(self.file, field, message)


Refusals = Callable[[Request], Iterator[Mistake]]


def parsed_version(text: str) -> Version:
    """``0.13``, ``core_r0.13.0`` or ``v26.1`` as numbers; InputError for anything else."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise InputError(Mistake("--framework-version", "", f"{text[:40]!r} is not a version; e.g. 0.13 is"))
    return tuple(map(int, match[1].split(".")))


def parsed_hosts(text: str, plan: Plan) -> tuple[str, ...]:
    """Hosts separated by commas, one for each node of the plan's cluster; InputError names what is wrong."""
    hosts = tuple(host.strip() for host in text.split(","))
    num_nodes = sum(group.count for group in plan.experiment.cluster.nodes)
    for host in hosts:
        if not HOST_PATTERN.fullmatch(host):
            raise InputError(Mistake("--hosts", "", f"{host[:60]!r} is not the name or address of a host"))
    if len(hosts) != num_nodes:
        message = f"{len(hosts)} hosts are given; the plan's cluster has {num_nodes} nodes, in the order of its file"
        raise InputError(Mistake("--hosts", "", message))
    if repeated := next((host for index, host in enumerate(hosts) if host in hosts[:index]), None):
        raise InputError(Mistake("--hosts", "", f"{repeated} is listed twice"))
    return hosts


def check_layout(plan: Plan, file: str) -> None:
    """Refuses a plan file whose devices, layers or settings can't be right: a changed or a damaged one."""
    checks = (check_devices, check_layers, check_settings, check_neighbours)
    findings = [check(plan.experiment, plan.pipeline) for check in checks]
    wrong = [finding for finding in findings if finding.verdict is Verdict.WRONG]
    if wrong:
        raise InputError(Mistake(file, finding.check, f"{finding.detail}; see poseidon verify") for finding in wrong)


def label(name: str) -> str:
    """A name from a plan as it may stand in any file: letters, digits, dot, dash and underscore alone."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
