"""Which layers have experts: ``--moe-layer-freq``, a number or a Python list such as ``([0]*3+[1]*58)``."""

from __future__ import annotations

import re

from poseidon.errors import InputError, Mistake

FLAG = "--moe-layer-freq"
MOST_LAYERS = 10_000
_TOKEN = re.compile(r"\s*(?:([0-9]{1,6})|([\[\](),+*]))")


def moe_layers(text: str, num_layers: int) -> tuple[bool, ...]:
    """Whether each layer has experts. A number n: layers 0, n, 2n, ... (Megatron-LM). InputError where it is neither.

    The text is read as lists of 0 and 1, their sums and their multiples; it is never evaluated.
    """
    if re.fullmatch(r"[0-9]{1,6}", text):
        every = int(text)
        if every < 1:
            raise InputError(Mistake(FLAG, "", "0 is no distance between layers; at least 1 is accepted"))
        return tuple(layer % every == 0 for layer in range(num_layers))
    pattern = _Reader(text).whole()
    if len(pattern) != num_layers:
        raise InputError(Mistake(FLAG, "", f"describes {len(pattern)} layers; --num-layers is {num_layers}"))
    return tuple(value == 1 for value in pattern)


class _Reader:
    """Reads ``sum = product + product ...``, ``product = list * number``, ``list = [0, 1] or (sum)``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None or len(self._tokens) > 4 * MOST_LAYERS:
                raise self._mistake()
            self._tokens.append(match[1] or match[2])
            position = match.end()
        self._next = 0

    def whole(self) -> list[int]:
        values = self._sum(depth=0)
        if self._next != len(self._tokens):
            raise self._mistake()
        return values

    def _sum(self, depth: int) -> list[int]:
        values = self._product(depth)
        while self._take("+"):
            values = self._bounded(values + self._product(depth))
        return values

    def _product(self, depth: int) -> list[int]:
        values = self._list(depth)
        while self._take("*"):
            times = self._number()
            if times * len(values) > MOST_LAYERS:
                raise self._mistake()
            values = values * times
        return values

    def _list(self, depth: int) -> list[int]:
        if depth > 20:
            raise self._mistake()
        if self._take("("):
            values = self._sum(depth + 1)
            self._need(")")
            return values
        self._need("[")
        values = []
        while not self._take("]"):
            values.append(self._number())
            if values[-1] > 1 or (not self._take(",") and self._peek() != "]"):
                raise self._mistake()
        return self._bounded(values)

    def _bounded(self, values: list[int]) -> list[int]:
        if len(values) > MOST_LAYERS:
            raise self._mistake()
        return values

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        found = self._peek() == token
        self._next += found
        return found

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise self._mistake()

    def _number(self) -> int:
        token = self._peek()
        if not token.isdigit():
            raise self._mistake()
        self._next += 1
        return int(token)

    def _mistake(self) -> InputError:
        message = f"{self._text[:60]!r} is neither a number nor lists of 0 and 1, e.g. '([0]*3+[1]*58)'"
        return InputError(Mistake(FLAG, "", message))
