"""YAML text to plain data, event by event: bounded in size and depth, exact about repeated keys, safe with aliases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import yaml

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.limits import MAX_DEPTH, MAX_MISTAKES, MAX_VALUES
from poseidon.inputs.yaml_scalar import plain_scalar

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def parse_yaml(text: str, file: str) -> tuple[Any, list[Mistake]]:
    """The value of a YAML document, with a mistake for each repeated key and infinite number.

    Raises InputError when the text is not valid or not plain data.
    """
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        raise InputError(Mistake(file, "", f"is not valid YAML: {_yaml_problem(error)}")) from None
    return builder.value, builder.mistakes


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return f"{where}{error.problem or error.context or 'cannot be parsed'}"
    return " ".join(str(error).split())


@dataclass
class _Container:
    """A list or mapping that is being read."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    num_values: int = 1
    key: str | None = None
    key_lines: dict[str, int] = field(default_factory=dict)

    def place(self) -> str | int:
        """Key or index of the value that is being read."""
        return len(self.value) if isinstance(self.value, list) else (self.key or "")


class _Builder:
    """Builds the document's value from parser events, with a stack instead of recursion."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.value: Any = None
        self.mistakes: list[Mistake] = []
        self._stack: list[_Container] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._num_documents = 0

    def take(self, event: yaml.Event) -> None:
        """Takes the next event of the parser."""
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent():
                self._num_documents += 1
                if self._num_documents > 1:
                    raise self._refusal(f"line {line}: starts a second document; one is expected")
            case yaml.ScalarEvent():
                self._take_scalar(event, line)
            case yaml.AliasEvent():
                self._take_alias(event.anchor or "", line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = self._stack.pop()
                self._put(closed.value, closed.num_values, closed.anchor, line)

    def _take_scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        value = plain_scalar(event.value) if event.implicit[0] else event.value
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._take_key(top, event, line)
            return
        if isinstance(value, float) and not math.isfinite(value):
            self._mistake(line, f"{shown(event.value)} is not a finite number")
        self._put(value, 1, event.anchor, line)

    def _take_key(self, container: _Container, event: yaml.ScalarEvent, line: int) -> None:
        text = event.value
        if text == "<<" and event.implicit[0]:
            raise self._refusal(f"line {line}: merge keys (<<) are not supported; write the keys out")
        if event.anchor is not None:
            self._anchors[event.anchor] = (text, 1)
        first = container.key_lines.setdefault(text, line)
        container.key = text
        if text in container.value:
            self._mistake(line, f"the key is given twice (first in line {first})")

    def _take_alias(self, anchor: str, line: int) -> None:
        if any(container.anchor == anchor for container in self._stack):
            raise self._refusal(f"line {line}: *{anchor} refers to the value that contains it (a cycle)")
        if anchor not in self._anchors:
            raise self._refusal(f"line {line}: *{anchor} refers to no anchor")
        value, num_values = self._anchors[anchor]
        self._put(value, num_values, None, line)

    def _open(self, event: yaml.CollectionStartEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        if self._expects_key():
            raise self._refusal(f"line {line}: a key must be text, not a list or mapping")
        if len(self._stack) >= MAX_DEPTH:
            raise self._refusal(f"line {line}: is nested too deeply: at most {MAX_DEPTH} levels are accepted")
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Container(value, event.anchor))

    def _put(self, value: Any, num_values: int, anchor: str | None, line: int) -> None:
        if self._expects_key():
            raise self._refusal(f"line {line}: a key must be text, not a list, mapping or alias")
        if anchor is not None:
            self._anchors[anchor] = (value, num_values)
        if not self._stack:
            self.value = value
            return
        top = self._stack[-1]
        top.num_values += num_values
        if top.num_values > MAX_VALUES:
            raise self._refusal(f"line {line}: has more than {MAX_VALUES:,} values, counting those that aliases repeat")
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is not None:
            top.value[top.key] = value
            top.key = None

    def _expects_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in _PLAIN_TAGS:
            raise self._refusal(f"line {line}: the tag {shown(tag)} is not accepted; only plain data is")

    def _mistake(self, line: int, message: str) -> None:
        if len(self.mistakes) >= MAX_MISTAKES:
            raise self._refusal("and more mistakes")
        location = [container.place() for container in self._stack]
        self.mistakes.append(Mistake(self._file, field_path(location), f"line {line}: {message}"))

    def _refusal(self, message: str) -> InputError:
        return InputError([*self.mistakes, Mistake(self._file, "", message)])
