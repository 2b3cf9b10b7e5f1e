"""A mapping that keeps what was used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Holds at most `most` values; the one that was not asked for the longest makes room."""

    def __init__(self, most: int) -> None:
        """`most` is at least one."""
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of a key; None where it is not held."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def __setitem__(self, key: Key, value: Value) -> None:
        """Keeps a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    def pop(self, key: Key) -> None:
        """Lets go of a key, if it is held."""
        self._values.pop(key, None)

    def __len__(self) -> int:
        """How many values it holds."""
        return len(self._values)
