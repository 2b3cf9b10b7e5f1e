"""A replanning, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.explain.runs import runs
from poseidon.output.console import Columns, rendered
from poseidon.output.numbers import gigabytes, milliseconds, percent, plural, ranges
from poseidon.output.plan_view import shape_line
from poseidon.plan import Plan
from poseidon.replan.holdings import part_name
from poseidon.replan.layer_moves import LayerMove, layer_moves
from poseidon.replan.replan import Replanned

MOST_ROWS = 60


def replanned_text(replanned: Replanned, stream: TextIO) -> str:
    """Old and new plan, and the moves, as text for `stream`."""
    return rendered(list(_parts(replanned, stream)), stream)


def _parts(replanned: Replanned, stream: TextIO) -> Iterator[RenderableType]:
    old, new = replanned.old, replanned.new
    yield Text(f"{new.experiment.model.name} on {new.experiment.cluster.name}: {_change(replanned)}", style="bold")
    for name, plan in (("Old", old), ("New", new)):
        yield Text(f"{name}: {_summary(plan)}")
    ratio = new.pipeline.iteration_time_ms / old.pipeline.iteration_time_ms - 1
    speed = new.pipeline.tokens_per_second / old.pipeline.tokens_per_second
    yield Text(
        f"An iteration takes {percent(abs(ratio))} {'longer' if ratio >= 0 else 'less'}; "
        f"{percent(speed)} of the old tokens/s."
    )
    yield Text("")
    moving = [move for move in layer_moves(replanned) if move.moves]
    if moving:
        yield _table(replanned, moving, stream)
        if len(moving) > MOST_ROWS:
            yield Text(f"and {len(moving) - MOST_ROWS} more, all of them in moves.json (--out DIR)")
        yield Text("")
    yield Text(totals_line(replanned))
    if replanned.loaded_bytes:
        yield Text(
            "What no survivor has is in a checkpoint only, so training goes back to the checkpoint's step: what moves "
            "must be that step's state too, or be loaded with the rest."
        )
    if replanned.new.pipeline.idle:
        parts = ", ".join(f"{_node(replanned, part.node)}: {ranges(part.devices)}" for part in new.pipeline.idle[:8])
        yield Text(f"Idle: {parts}{', ...' if len(new.pipeline.idle) > 8 else ''}")
    yield Text(f"Planned in {new.search.seconds:.2f} s, moves in {replanned.placing_s:.2f} s.")


def _change(replanned: Replanned) -> str:
    was = sum(group.count for group in replanned.old.experiment.cluster.nodes)
    left = [node for node in replanned.nodes if node.was is not None]
    added = len(replanned.nodes) - len(left)
    cluster = replanned.old.experiment.cluster
    lost = cluster.num_devices - sum(len(node.devices) for node in left)
    parts = []
    if lost:
        parts.append(f"{plural(lost, 'device')} lost ({plural(was - len(left), 'whole node')})")
    if added:
        parts.append(f"{plural(added, 'node')} added")
    return ", ".join(parts) or "nothing lost or added"


def _summary(plan: Plan) -> str:
    pipeline = plan.pipeline
    return (
        f"{shape_line(pipeline)}: {milliseconds(pipeline.iteration_time_ms)} ms, "
        f"{pipeline.tokens_per_second:,.0f} tokens/s, "
        f"layers {runs(['+'.join(map(str, stage.layers)) for stage in pipeline.stages])}"
    )


def totals_line(replanned: Replanned) -> str:
    """All bytes in one sentence."""
    if not replanned.received_bytes + replanned.loaded_bytes:
        return f"Nothing moves: all {gigabytes(replanned.kept_bytes)} GB of weights and optimizer state stay."
    loads = f"; {gigabytes(replanned.loaded_bytes)} GB are lost" if replanned.loaded_bytes else "; nothing is lost"
    return (
        f"{gigabytes(replanned.kept_bytes)} GB of weights and optimizer state stay, "
        f"{gigabytes(replanned.received_bytes)} GB move between devices, in about "
        f"{replanned.transfers_ms / 1e3:.2f} s over the links{loads}."
    )


def _table(replanned: Replanned, moving: list[LayerMove], stream: TextIO) -> Table:
    columns = Columns(stream, "What moves (stages with their ranks)")
    columns.name("Layers", "From", "To", "Nodes")
    columns.number("Stay GB", "Move GB", "Lost GB")
    old, new = replanned.old.pipeline, replanned.new.pipeline
    for move in moving[:MOST_ROWS]:
        stage = new.stages[move.new_stage]
        columns.row(
            parts_text(move.parts),
            f"{move.old_stage} ({ranges(old.stages[move.old_stage].ranks)})",
            f"{move.new_stage} ({ranges(stage.ranks)})",
            ", ".join(dict.fromkeys(_node(replanned, node) for node in stage.nodes)),
            *(gigabytes(value) for value in (move.kept_bytes, move.received_bytes, move.loaded_bytes)),
        )
    return columns.table()


def _node(replanned: Replanned, number: int) -> str:
    """A node as people know it: by its number in the old cluster, or as an added one."""
    node = replanned.nodes[number]
    return f"added ({number})" if node.was is None else f"node{node.was}"


def parts_text(parts: tuple[int, ...]) -> str:
    """``4-7, head``."""
    layers = [part for part in parts if part >= 0]
    words = [ranges(layers)] if layers else []
    return ", ".join([*words, *(part_name(part) for part in sorted(parts, reverse=True) if part < 0)])
