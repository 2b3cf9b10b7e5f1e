"""A first look at a file, to tell its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from poseidon.inputs.reading import read_document
from poseidon.profile.importers.text import lines_of

LINES = 3


@dataclass(frozen=True)
class Peeked:
    """A JSON file's content, or the first lines of another file; a folder has neither."""

    path: Path
    data: Mapping[str, Any] | None
    lines: tuple[str, ...]

    @property
    def known_other(self) -> str | None:
        """What the file is, where it is a peer's file that holds no profile."""
        if self.data is None:
            first = self.lines[0] if self.lines else ""
            return next((said for start, said in OTHER_TEXT.items() if first.startswith(start)), None)
        said = next((said for keys, said in OTHER_JSON.items() if keys <= self.data.keys()), None)
        inner = next((value for value in self.data.values() if isinstance(value, Mapping)), {})
        return said or ("is Sailor's cluster description, not a profile" if "gpus_per_node" in inner else None)


OTHER_JSON = {
    frozenset({"overlap_coe"}): "holds Galvatron's slow-down of overlapped work, which is no part of a profile",
    frozenset({"pp_deg", "tp_sizes_enc"}): "is a plan of Galvatron's, not a profile",
    frozenset({"pipeline_list", "gbs"}): "is a plan of Sailor's with its measured time, not a profile",
    frozenset({"global_batch_size", "num_all_layers"}): "is Sailor's training configuration, not a profile",
    frozenset({"schema"}): "is a file of poseidon's own, which needs no import (--to metis converts a profile)",
}
OTHER_TEXT = {
    "size,350M": "is a table of Aceso's results (actual and predicted), not a profile",
    ",Timestamp": "is a trace of available devices, not a profile",
    "NUM_NODES": "is a search configuration of Galvatron's, not a profile",
}


def peeked(path: Path) -> Peeked:
    """A look at a file; InputError where it can't be read."""
    if path.is_dir():
        return Peeked(path, None, ())
    if path.suffix.lower() == ".json":
        return Peeked(path, dict(read_document(path).data), ())
    return Peeked(path, None, tuple(islice(lines_of(path, stray_bytes=True), LINES)))
