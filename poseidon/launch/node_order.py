"""Which number a node's launcher gets, and where the launchers meet, when nodes are in a plan's order."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.errors import InputError, Mistake
from poseidon.launch.launcher import LauncherCall
from poseidon.launch.rewrite import Change
from poseidon.output.export import Place


def place_of_node(places: Sequence[Place], node: int) -> Place:
    """Where this node stands in the plan; InputError where that is not one launcher with all of its devices."""
    mine = [place for place in places if place.node == node]
    if len(mine) == 1 and mine[0].is_whole_node:
        return mine[0]
    what = "only some of its devices" if len(mine) == 1 else f"{len(mine)} launchers"
    message = f"gives node {node} {what}, and this command starts one launcher with all of them; see poseidon export"
    raise InputError(Mistake("the plan", "stages", message))


def ordered_call(
    call: LauncherCall, places: Sequence[Place], hosts: Sequence[str]
) -> tuple[LauncherCall, tuple[Change, ...]]:
    """The call with this node's number in the plan's order, and with the address of the plan's first node.

    Ranks follow the numbers of the nodes, and the node with number 0 is where all others connect to. Raises InputError
    where that is another node than before and its address is not known.
    """
    place = place_of_node(places, call.node_rank)
    changed, changes = call, []
    if place.number != call.node_rank:
        changed = changed.with_option("--node-rank", str(place.number))
        reason = f"node {call.node_rank} serves stage {place.stages[0]} of the plan"
        changes.append(_change(call, changed, "--node-rank", reason))
    first = places[0]
    if first.node != 0:
        if not hosts:
            message = (
                f"are needed: the plan begins on node {first.node}, where all others then connect to, and its address "
                "is not known; give the hosts of all nodes, in the order of their node ranks: --hosts A,B,..."
            )
            raise InputError(Mistake("--hosts", "", message))
        option, value = "--master-addr", hosts[first.node]
        if call.endpoint:
            option, value = "--rdzv-endpoint", f"{value}:{_port(call)}"
        before, changed = changed, changed.with_option(option, value)
        changes.append(_change(before, changed, option, f"the plan begins on node {first.node}"))
    return changed, tuple(changes)


def _port(call: LauncherCall) -> str:
    port = call.endpoint.rpartition(":")[2] if ":" in call.endpoint else ""
    return port if port.isdigit() else call.master_port


def _change(before: LauncherCall, after: LauncherCall, option: str, reason: str) -> Change:
    old, new = before.options.last(option), after.options.last(option)
    assert new is not None
    written = "" if old is None else " ".join(old.words)
    return Change("changed" if old else "added", option, written, " ".join(new.words), reason)
