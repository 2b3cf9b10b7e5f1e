"""The same changes where the times come from a profile file: measured rows of what gets faster take less time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from poseidon.profile.profile import LayerKey, Profile, Row, RowKey
from poseidon.report.changes import FASTER, Change

Key = TypeVar("Key", LayerKey, RowKey)


def changed_profile(profile: Profile, change: Change) -> Profile:
    """The profile with the rows of the accelerator, or the messages of the link class, at 1/1.1 of their time.

    A layer's row holds its TP communication, too: it can't be told apart, so that a faster link leaves it as it is.
    """
    if change.kind == "link":
        return replace(
            profile,
            transfers=tuple(
                replace(row, ms=row.ms / FASTER) if row.link == change.subject else row for row in profile.transfers
            ),
            all_reduce=tuple(
                replace(row, ms=row.ms / FASTER) if row.link == change.subject else row for row in profile.all_reduce
            ),
        )
    if change.kind == "accelerator":
        return replace(
            profile,
            layers=_faster(profile.layers, change.subject),
            embedding=_faster(profile.embedding, change.subject),
            head=_faster(profile.head, change.subject),
        )
    return profile


def _faster(rows: Mapping[Key, Row], accelerator: str) -> dict[Key, Row]:
    return {
        key: _faster_row(row) if (key.at if isinstance(key, LayerKey) else key).accelerator == accelerator else row
        for key, row in rows.items()
    }


def _faster_row(row: Row) -> Row:
    return replace(
        row,
        forward_ms=row.forward_ms / FASTER,
        backward_ms=row.backward_ms / FASTER,
        update_ms=row.update_ms / FASTER,
    )
