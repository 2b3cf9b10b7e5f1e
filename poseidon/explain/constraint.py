"""What `--with` fixes: single settings of a plan, its layers and its order of accelerators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.explain.runs import runs
from poseidon.inputs import Experiment, experiment_from_resolved
from poseidon.inputs.file_model import nearest, shown
from poseidon.schedule.registry import SCHEDULES

OPTION = "--with"
MOST = 1_000_000
COUNTS = ("dp", "tp", "pp", "micro_batch_size", "num_chunks")
CHOICES = {"schedule": tuple(SCHEDULES), "recompute": ("none", "selective", "full")}
LISTS = ("layers", "order")
KEYS = ("dp", "tp", "pp", "micro_batch_size", "schedule", "num_chunks", "recompute", *LISTS)
"""The accepted keys."""

Value = int | str | tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True)
class Fixed:
    """One setting that is fixed."""

    key: str
    value: Value

    def __str__(self) -> str:
        """As the option has it."""
        if not isinstance(self.value, tuple):
            return f"{self.key}={self.value}"
        return f"{self.key}={runs(list(map(str, self.value))).replace(' ', '')}"


@dataclass(frozen=True)
class Constraint:
    """Everything that is fixed, at most once for each key."""

    fixed: tuple[Fixed, ...]

    def __str__(self) -> str:
        """As the option has it."""
        return " ".join(map(str, self.fixed))

    def get(self, key: str) -> Any:
        """The value of a key; None where it is not fixed."""
        return next((item.value for item in self.fixed if item.key == key), None)

    def without(self, key: str) -> Constraint:
        """All but one key."""
        return Constraint(tuple(item for item in self.fixed if item.key != key))

    def plus(self, key: str, value: Value) -> Constraint:
        """The same with a key fixed to a value."""
        return Constraint((*self.without(key).fixed, Fixed(key, value)))


def parsed_constraint(texts: Sequence[str], experiment: Experiment) -> Constraint:
    """``pp=8``, ``tp=2,dp=4``, ``layers=6,8,10,8``: several, one after the other or each by itself.

    Raises InputError for unknown or repeated keys and for values that no experiment could have.
    """
    fixed: list[Fixed] = []
    for key, words in _pairs(texts):
        if key in (item.key for item in fixed):
            raise _mistake(f"{key} is given twice")
        fixed.append(Fixed(key, _value(key, words, experiment)))
    return Constraint(tuple(fixed))


def _pairs(texts: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each key with its values: what follows a comma without a key of its own belongs to the key before it."""
    for text in texts:
        pairs: list[tuple[str, list[str]]] = []
        for word in (word.strip() for word in text.split(",")):
            key, equals, value = (part.strip() for part in word.partition("="))
            if equals:
                pairs.append((_known(key), [value]))
            elif pairs:
                pairs[-1][1].append(word)
            else:
                raise _mistake(f"{shown(text)} is not KEY=VALUE; the keys are {', '.join(KEYS)}")
        yield from pairs


def _known(key: str) -> str:
    name = key.replace("-", "_")
    if name in KEYS:
        return name
    suggestion = nearest(name, KEYS)
    hint = f"did you mean {suggestion}? " if suggestion else ""
    raise _mistake(f"unknown key {shown(key)}; {hint}accepted: {', '.join(KEYS)}")


def _value(key: str, words: list[str], experiment: Experiment) -> Value:
    if key == "layers":
        return _layers(words, experiment)
    if key == "order":
        return tuple(_order(words, experiment))
    if len(words) > 1:
        raise _mistake(f"{key} takes one value, not {len(words)}")
    if key in COUNTS:
        return _count(key, words[0], 2 if key == "num_chunks" else 1)
    if words[0] not in CHOICES[key]:
        raise _mistake(f"{key}: {shown(words[0])} is not known; accepted: {', '.join(CHOICES[key])}")
    return words[0]


def _count(key: str, word: str, least: int) -> int:
    number = int(word) if word.isascii() and word.isdecimal() and len(word) < 8 else 0
    if not least <= number <= MOST:
        raise _mistake(f"{key}: {shown(word)} is not a whole number from {least} to {MOST:,}")
    return number


def _layers(words: list[str], experiment: Experiment) -> tuple[int, ...]:
    layers: list[int] = []
    for word in words:
        count, star, times = word.partition("*")
        layers += [_count("layers", count, 1)] * (_times("layers", times, experiment) if star else 1)
    if sum(layers) != experiment.model.num_layers:
        raise _mistake(f"layers: they add up to {sum(layers)}; the model has {experiment.model.num_layers}")
    return tuple(layers)


def _times(key: str, word: str, experiment: Experiment) -> int:
    """How often a value is repeated; no plan has more stages than layers."""
    return min(_count(key, word, 1), experiment.model.num_layers + 1)


def _order(words: list[str], experiment: Experiment) -> Iterator[str]:
    """The accelerators, ``NAME*N`` written out; each once: all of its stages together."""
    names = list(dict.fromkeys(group.accelerator for group in experiment.cluster.nodes))
    for word in words:
        name, star, times = word.rpartition("*")
        if not star or word in names:
            name, times = word, "1"
        if name not in names:
            raise _mistake(f"order: {shown(name)} is no accelerator of the cluster; it has {', '.join(names)}")
        yield from [name] * _times("order", times, experiment)


def _mistake(message: str) -> InputError:
    return InputError(Mistake(OPTION, "", message))


def constrained(experiment: Experiment, constraint: Constraint) -> Experiment:
    """The experiment with the settings fixed (`layers` and `order` are left to `narrowing`).

    Raises InputError where they do not fit the model, the cluster or the batch.
    """
    data = experiment.resolved()
    for item in constraint.fixed:
        match item.key:
            case "dp" | "tp" | "pp":
                data["search"][f"fixed_{item.key}"] = item.value
            case "micro_batch_size" | "schedule":
                data["training"][f"{item.key}s"] = [item.value]
            case "num_chunks":
                data["training"]["num_chunks"] = [item.value]
            case "recompute":
                data["training"]["recompute"] = item.value
    if constraint.get("num_chunks") and not constraint.get("schedule"):
        data["training"]["schedules"] = ["interleaved_1f1b"]
    return experiment_from_resolved(data, OPTION)
