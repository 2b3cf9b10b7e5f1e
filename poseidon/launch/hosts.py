"""Names of hosts from the command line: checked, since they become words of other commands."""

from __future__ import annotations

from poseidon.errors import InputError, Mistake
from poseidon.output.export.request import HOST_PATTERN


def host_names(text: str) -> tuple[str, ...]:
    """Hosts separated by commas; InputError for what is not the name or address of one, or is listed twice."""
    hosts = tuple(host.strip() for host in text.split(","))
    for index, host in enumerate(hosts):
        if not HOST_PATTERN.fullmatch(host):
            raise InputError(Mistake("--hosts", "", f"{host[:60]!r} is not the name or address of a host"))
        if host in hosts[:index]:
            raise InputError(Mistake("--hosts", "", f"{host} is listed twice"))
    return hosts
