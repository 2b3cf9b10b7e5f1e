"""``--added``: nodes of a type that the cluster has, or of one with an accelerator file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import poseidon
from poseidon.errors import InputError, Mistake
from poseidon.inputs import Accelerator, Cluster, NodeGroup, read_document, validate
from poseidon.inputs.file_model import shown

OPTION = "--added"
FORMS = "2xA100 (two nodes like the cluster's A100 nodes), A100 (one), 2xA100:4 (two with four devices each)"
MOST_NODES, MOST_DEVICES = 100_000, 1024
_ADDED = re.compile(r"(?:(\d{1,6})x)?(.{1,100}?)(?::(\d{1,4}))?")


@dataclass(frozen=True)
class Addition:
    """Nodes to add, and the accelerators among them that the cluster does not have."""

    groups: tuple[NodeGroup, ...]
    accelerators: Mapping[str, Accelerator]


def additions(texts: Sequence[str], files: Sequence[Path], cluster: Cluster) -> Addition:
    """What the options add; `files` are accelerator files, whose names (without ``.yaml``) are their types' names.

    Raises InputError for unknown types and unknown numbers of devices.
    """
    known = dict(cluster.accelerators)
    given = {path.stem: _accelerator(path) for path in files}
    if repeated := [name for name in given if name in known]:
        raise InputError(Mistake("--accelerator", "", f"the cluster has an accelerator {shown(repeated[0])} already"))
    groups, new = [], {}
    for word in (word.strip() for text in texts for word in text.split(",")):
        count, name, devices = _parsed(word, known)
        if name not in known:
            new[name] = given[name] if name in given else _shipped(name, known, [*given])
        groups.append(_group(word, name, count, devices, cluster))
    return Addition(tuple(groups), new)


def _parsed(word: str, known: Mapping[str, Accelerator]) -> tuple[int, str, int | None]:
    """Count, type, devices."""
    if word in known:
        return 1, word, None
    match = _ADDED.fullmatch(word)
    if match is None:
        raise _mistake(f"{shown(word)} is not NxTYPE; accepted: {FORMS}")
    count, devices = int(match[1] or 1), None if match[3] is None else int(match[3])
    if not 1 <= count <= MOST_NODES or (devices is not None and not 1 <= devices <= MOST_DEVICES):
        raise _mistake(f"{shown(word)}: 1 to {MOST_NODES:,} nodes with 1 to {MOST_DEVICES:,} devices each are accepted")
    return count, match[2], devices


def _group(word: str, name: str, count: int, devices: int | None, cluster: Cluster) -> NodeGroup:
    """Nodes like those of the same type, where there are any: the same links, in the same cluster."""
    alike = [group for group in cluster.nodes if group.accelerator == name]
    sizes = sorted({group.devices for group in alike})
    if devices is None:
        if len(sizes) != 1:
            has = f"nodes of {name} have {' or '.join(map(str, sizes))} devices" if sizes else f"{name} is new here"
            raise _mistake(f"{shown(word)}: {has}; say how many, e.g. {count}x{name}:{sizes[-1] if sizes else 8}")
        devices = sizes[0]
    model = next((group for group in alike if group.devices == devices), alike[0] if alike else None)
    if model is None:
        return NodeGroup(accelerator=name, count=count, devices=devices, cluster=name)
    return model.model_copy(update={"count": count, "devices": devices})


def _accelerator(path: Path) -> Accelerator:
    return validate(Accelerator, read_document(path).data, str(path))


def shipped_folders() -> tuple[Path, ...]:
    """Where accelerator files that come with the project may lie."""
    return (Path("configs/accelerators"), Path(poseidon.__file__).parent.parent / "configs" / "accelerators")


def _shipped(name: str, known: Mapping[str, Accelerator], given: Sequence[str]) -> Accelerator:
    """The accelerator of a file that comes with the project; only plain names are looked for."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        for folder in shipped_folders():
            path = folder / f"{name}.yaml"
            if path.is_file():
                return _accelerator(path)
    raise _mistake(
        f"{shown(name)} is no accelerator of the cluster ({', '.join(map(shown, [*known, *given]))}) and no file of "
        "configs/accelerators; give its file with --accelerator FILE"
    )


def _mistake(message: str) -> InputError:
    return InputError(Mistake(OPTION, "", message))
