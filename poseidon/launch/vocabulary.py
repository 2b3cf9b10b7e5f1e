"""How many rows the embedding has: the vocabulary, padded as Megatron-LM pads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.reading import read_document
from poseidon.launch.arguments import Arguments

DIVISOR = 128
"""Default of --make-vocab-size-divisible-by."""


def padded_vocabulary(arguments: Arguments, tp: int, given: int | None) -> int:
    """Rows of the token embedding at this TP degree.

    `given` is what the user says that the tokenizer has. InputError where nothing tells the size.
    """
    padded = arguments.count("--padded-vocab-size")
    if padded is not None:
        return padded
    size = given if given is not None else arguments.count("--vocab-size")
    if size is None:
        size = _of_tokenizer(arguments)
    size += arguments.count("--vocab-extra-ids") or 0
    if arguments.has("--no-pad-vocab-size"):
        return size
    multiple = padding_multiple(arguments, tp)
    return -(-size // multiple) * multiple


def padding_multiple(arguments: Arguments, tp: int) -> int:
    """The embedding's rows are a multiple of this."""
    divisor = arguments.count("--make-vocab-size-divisible-by")
    return max(1, DIVISOR if divisor is None else divisor) * tp


def _of_tokenizer(arguments: Arguments) -> int:
    """The size of the tokenizer whose files are here."""
    for flag in ("--vocab-file", "--tokenizer-model", "--tokenizer-name-or-path"):
        path = arguments.text(flag)
        if path is not None and (size := _of_file(Path(path))):
            return size
    message = (
        "is not given, and no tokenizer file here tells it; say how many tokens the tokenizer has with poseidon launch "
        "--vocab-size N -- ... (the framework's own flags stay as they are)"
    )
    raise InputError(Mistake("--vocab-size", "", message))


def _of_file(path: Path) -> int:
    """Tokens of a GPT-2 vocabulary, or of a Hugging Face tokenizer's folder; 0 where the file is neither."""
    document = path / "tokenizer.json" if path.is_dir() else path
    if document.suffix != ".json" or not os.access(document, os.R_OK):
        return 0
    try:
        data = read_document(document).data
    except InputError:
        return 0
    if document.name != "tokenizer.json":
        return len(data)
    model, added = data.get("model"), data.get("added_tokens", ())
    vocabulary: Any = model.get("vocab", {}) if isinstance(model, Mapping) else {}
    extra = [token for token in added if isinstance(token, Mapping) and token.get("content") not in vocabulary]
    return len(vocabulary) + len(extra) if vocabulary else 0
