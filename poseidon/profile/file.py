"""Profiles as files: ``poseidon.profile/1`` (the fields are described in docs/profile.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from poseidon.errors import InputError, Mistake
from poseidon.inputs.fields import Count, Name, Switch
from poseidon.inputs.file_model import FileModel
from poseidon.inputs.links import LinkClass
from poseidon.inputs.model import LayerType
from poseidon.inputs.reading import read_document
from poseidon.inputs.training import Precision, Recompute
from poseidon.inputs.validation import validate
from poseidon.profile.measurement import MeasuredCompute, MeasuredMessage, Taken
from poseidon.profile.profile import LayerKey, MeasuredAllReduce, MeasuredTransfer, Profile, Row, RowKey

SCHEMA = "poseidon.profile/1"
Milliseconds = Annotated[float, Field(ge=0, le=1e12)]
Bytes = Annotated[float, Field(ge=0, le=1e18)]


class _Row(FileModel):
    accelerator: Name
    tp: Count
    micro_batch_size: Count
    forward_ms: Milliseconds
    backward_ms: Milliseconds
    weight_bytes: Bytes
    activation_bytes: Bytes
    recomputed_bytes: Bytes = 0.0
    measured: MeasuredCompute | None = None
    source: Annotated[str, Field(max_length=1_000)] = ""
    update_ms: Milliseconds = 0.0

    @property
    def key(self) -> RowKey:
        return RowKey(self.accelerator, self.tp, self.micro_batch_size)

    @property
    def row(self) -> Row:
        return Row(
            self.forward_ms,
            self.backward_ms,
            self.weight_bytes,
            self.activation_bytes,
            self.recomputed_bytes,
            self.source,
            self.update_ms,
        )


class _LayerRow(_Row):
    layer_type: LayerType
    recompute: Recompute | None = None


class _VocabularyRow(_Row):
    layer_type: Literal["embedding", "head"] | None = None


class _Measured(BaseModel):
    """A record whose names in the file can't be names of fields here."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Transfer(_Measured):
    sender: Name = Field(alias="from")
    receiver: Name = Field(alias="to")
    link: LinkClass
    num_bytes: Bytes = Field(alias="bytes")
    ms: Milliseconds
    measured: MeasuredMessage | None = None


class _AllReduce(_Measured):
    accelerator: Name
    tp: Count
    dp: Count
    link: LinkClass
    num_bytes: Bytes = Field(alias="bytes")
    ms: Milliseconds
    measured: MeasuredMessage | None = None


class _ProfileFile(FileModel):
    model: Name
    seq_length: Count
    precision: Precision
    source: str = ""
    sequence_parallel: Switch | None = None
    taken: tuple[Taken, ...] = ()
    layers: Annotated[tuple[_LayerRow, ...], Field(min_length=1)]
    embedding: tuple[_VocabularyRow, ...] = ()
    head: tuple[_VocabularyRow, ...] = ()
    transfers: tuple[_Transfer, ...] = ()
    all_reduce: tuple[_AllReduce, ...] = ()


def read_profile(path: str | Path, recompute: Recompute = "none") -> Profile:
    """Reads a profile file; `recompute` is what rows that don't say were measured with.

    Raises InputError with every mistake: fields, and rows given twice.
    """
    return profile_from_json(read_document(path).data, str(path), recompute)


def profile_from_json(document: Mapping[str, Any], file: str, recompute: Recompute = "none") -> Profile:
    """Reads a profile document that `file` names in errors; otherwise as `read_profile`."""
    data = dict(document)
    if data.pop("schema", None) != SCHEMA:
        raise InputError(Mistake(file, "schema", f"is not a profile: schema {SCHEMA!r} is expected"))
    parsed = validate(_ProfileFile, data, file)
    layer_keys = [LayerKey(row.key, row.layer_type, row.recompute or recompute) for row in parsed.layers]
    embedding_keys = [row.key for row in parsed.embedding]
    head_keys = [row.key for row in parsed.head]
    named_keys: dict[str, Sequence[object]] = {"layers": layer_keys, "embedding": embedding_keys, "head": head_keys}
    mistakes = [mistake for name, keys in named_keys.items() for mistake in _repeated(file, name, keys)]
    if mistakes:
        raise InputError(mistakes)
    return Profile(
        model=parsed.model,
        seq_length=parsed.seq_length,
        precision=parsed.precision,
        source=parsed.source,
        layers={key: row.row for key, row in zip(layer_keys, parsed.layers, strict=True)},
        embedding={key: row.row for key, row in zip(embedding_keys, parsed.embedding, strict=True)},
        head={key: row.row for key, row in zip(head_keys, parsed.head, strict=True)},
        transfers=tuple(MeasuredTransfer(t.sender, t.receiver, t.link, t.num_bytes, t.ms) for t in parsed.transfers),
        all_reduce=tuple(
            MeasuredAllReduce(r.accelerator, r.tp, r.dp, r.link, r.num_bytes, r.ms) for r in parsed.all_reduce
        ),
        sequence_parallel=parsed.sequence_parallel,
    )


def _repeated(file: str, name: str, keys: Sequence[object]) -> Iterator[Mistake]:
    seen: set[object] = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield Mistake(file, f"{name}[{index}]", f"the row for {key} is given twice")
        seen.add(key)


def write_profile(profile: Profile, path: str | Path) -> None:
    """Writes a profile file."""
    Path(path).write_text(profile_to_text(profile), encoding="utf-8")


def profile_to_text(profile: Profile) -> str:
    """The text of a profile file."""
    return json.dumps(profile_to_json(profile), indent=1) + "\n"


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """The profile as the file holds it."""
    layers = [
        {**_key_to_json(key.at), "layer_type": key.layer_type, "recompute": key.recompute, **_row_to_json(row)}
        for key, row in profile.layers.items()
    ]
    transfers = [
        {"from": t.sender, "to": t.receiver, "link": t.link, "bytes": t.num_bytes, "ms": t.ms}
        for t in profile.transfers
    ]
    all_reduce = [
        {"accelerator": r.accelerator, "tp": r.tp, "dp": r.dp, "link": r.link, "bytes": r.num_bytes, "ms": r.ms}
        for r in profile.all_reduce
    ]
    return {
        "schema": SCHEMA,
        "model": profile.model,
        "seq_length": profile.seq_length,
        "precision": profile.precision,
        "source": profile.source,
        **({} if profile.sequence_parallel is None else {"sequence_parallel": profile.sequence_parallel}),
        "layers": layers,
        "embedding": _vocabulary_to_json("embedding", profile.embedding),
        "head": _vocabulary_to_json("head", profile.head),
        "transfers": transfers,
        "all_reduce": all_reduce,
    }


def _vocabulary_to_json(name: str, rows: Mapping[RowKey, Row]) -> list[dict[str, Any]]:
    return [{**_key_to_json(key), "layer_type": name, **_row_to_json(row)} for key, row in rows.items()]


def _key_to_json(key: RowKey) -> dict[str, Any]:
    return {"accelerator": key.accelerator, "tp": key.tp, "micro_batch_size": key.micro_batch_size}


def _row_to_json(row: Row) -> dict[str, float | str]:
    numbers: dict[str, float | str] = {
        "forward_ms": row.forward_ms,
        "backward_ms": row.backward_ms,
        "weight_bytes": row.weight_bytes,
        "activation_bytes": row.activation_bytes,
        "recomputed_bytes": row.recomputed_bytes,
        "update_ms": row.update_ms,
    }
    return {**numbers, "source": row.source} if row.source else numbers
