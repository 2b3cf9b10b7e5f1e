"""Reads a YAML or JSON document from a file, refusing everything that is not plain data of a sane size."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.json_document import parse_json
from poseidon.inputs.limits import MAX_BYTES
from poseidon.inputs.source_file import file_label
from poseidon.inputs.yaml_document import parse_yaml


@dataclass(frozen=True)
class ReadDocument:
    """A document's content and the hash of the bytes that it was read from."""

    data: Mapping[str, Any]
    sha256: str
    mistakes: tuple[Mistake, ...] = ()
    """Repeated keys and infinite numbers; `read_document` raises them."""


def read_document(path: str | Path) -> ReadDocument:
    """Reads a mapping from a ``.json`` file, or from YAML in a file of any other name.

    Values are mappings with text keys, lists, text, finite numbers, truth values and None. Raises InputError when the
    file is missing, no regular file, unreadable, larger than `MAX_BYTES` (it is not read then), not valid, not a
    mapping, or has repeated or non-text keys, infinite numbers, or cyclic or exploding aliases.
    """
    document = read_tolerantly(path)
    if document.mistakes:
        raise InputError(document.mistakes)
    return document


def read_tolerantly(path: str | Path) -> ReadDocument:
    """Like `read_document`, but leaves repeated keys and infinite numbers in the document's `mistakes`.

    So the rest of the document can be checked too, and a person sees everything at once.
    """
    file = file_label(path)
    content = _read_bytes(path, file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal(file, f"is not a text file: byte {error.start} is not UTF-8") from None
    if not text.strip():
        raise _refusal(file, "is empty; a mapping of keys to values is expected")
    data, mistakes = parse_json(text, file) if str(path).lower().endswith(".json") else parse_yaml(text, file)
    if not isinstance(data, Mapping):
        raise _refusal(file, "does not hold a mapping of keys to values")
    return ReadDocument(data, hashlib.sha256(content).hexdigest(), tuple(mistakes))


def _read_bytes(path: str | Path, file: str) -> bytes:
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            hint = "; did you mean the config.json in it?" if os.path.isfile(os.path.join(path, "config.json")) else ""
            raise _refusal(file, f"is a directory; a YAML or JSON file is expected{hint}")
        if not stat.S_ISREG(status.st_mode):
            raise _refusal(file, "is not a regular file; a YAML or JSON file is expected")
        if status.st_size > MAX_BYTES:
            raise _too_large(file, status.st_size)
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refusal(file, "no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refusal(file, f"cannot be read: {reason}") from None
    if len(content) > MAX_BYTES:
        raise _too_large(file, len(content))
    return content


def _too_large(file: str, size: int) -> InputError:
    return _refusal(file, f"is too large: {size / 1e6:.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are accepted")


def _refusal(file: str, message: str) -> InputError:
    return InputError(Mistake(file, "", message))
