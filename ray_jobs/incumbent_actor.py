"""The actor that holds the time to beat (the paper's T_min) with the plan that reaches it, and tells every worker.

Workers offer plans; whoever waits is answered at once when something changes. What an actor that died knew comes back
from its checkpoint, and from every worker and the driver, who offer again what they found (`epoch` tells them).
"""

from __future__ import annotations

import asyncio
import math
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.search._incumbent_cell import NOBODY
from poseidon.search.incumbents import Incumbents
from poseidon.search.shard import Found


@dataclass(frozen=True)
class Offer:
    """A plan with the name of its outer choice."""

    name: str
    found: Found

    @property
    def iteration_time_ms(self) -> float:
        """Its time."""
        return self.found.iteration_time_ms

    @property
    def order_key(self) -> tuple[Any, ...]:
        """The declared total order."""
        stages = tuple((stage.kind, stage.layers) for stage in self.found.stages)
        return (self.found.iteration_time_ms, self.name, stages, self.found.depths)


@dataclass(frozen=True)
class News:
    """What workers are told."""

    epoch: str
    version: int
    cutoff_ms: float
    rank: int
    stop: bool
    hungry: bool
    is_over: bool


@dataclass(frozen=True)
class Rules:
    """What the actor must know of a search."""

    search: str
    names: tuple[str, ...]
    """Of the outer choices."""
    count: int
    """Plans that are asked for."""
    tie: float
    """Fraction up to which times are equal."""
    shares: bool
    """Whether workers are told a time to beat."""


NO_SEARCH = Rules("", (), 1, 0.0, False)


class IncumbentActor:
    """Keeps the best plans of one search at a time; an asynchronous actor."""

    def __init__(self, checkpoint: str) -> None:
        """`checkpoint` is a file on this actor's node; where it exists, the actor goes on from it."""
        self._checkpoint = Path(checkpoint)
        self._epoch = os.urandom(8).hex()
        self._changed = asyncio.Event()
        self._set_rules(NO_SEARCH)
        if self._checkpoint.exists():
            rules, offers = pickle.loads(self._checkpoint.read_bytes())
            self._set_rules(rules)
            for offer in offers:
                self._incumbents.offer(offer, 0.0)
                self._offers.append(offer.found)

    def _set_rules(self, rules: Rules) -> None:
        self._rules = rules
        self._ranks = {name: rank for rank, name in enumerate(sorted(rules.names))}
        self._incumbents: Incumbents[Offer] = Incumbents(rules.count, rules.tie)
        self._version = 0
        self._stop = self._hungry = False
        self._offers: list[Found] = []

    async def begin(self, rules: Rules) -> None:
        """Begins with a search; whoever waits for news of the one before is told that it is over."""
        if rules.search != self._rules.search:
            self._set_rules(rules)
            self._save()
            self._tell()

    async def offer(self, search: str, found: Found) -> None:
        """Takes a plan; offering the same one again changes nothing."""
        if search != self._rules.search:
            return
        if self._incumbents.offer(Offer(self._rules.names[found.problem], found), 0.0):
            self._offers.append(found)
            self._tell()
            self._save()

    def _save(self) -> None:
        unfinished = self._checkpoint.with_suffix(".new")
        unfinished.write_bytes(pickle.dumps((self._rules, self._incumbents.solutions)))
        unfinished.rename(self._checkpoint)

    async def set_flags(self, stop: bool, hungry: bool) -> None:
        """Whether workers are to hand back what they have, at once or to share it out."""
        if (stop, hungry) != (self._stop, self._hungry):
            self._stop, self._hungry = stop, hungry
            self._tell()

    async def news(self, search: str, epoch: str, version: int, timeout_s: float) -> News:
        """What holds now, as soon as it is another version than the one that is known, or when the time is up."""
        if (search, epoch, version) == (self._rules.search, self._epoch, self._version):
            await self._change(timeout_s)
        name = self._incumbents.cutoff_name if self._rules.shares else ""
        cutoff_ms = self._incumbents.cutoff_ms if name else math.inf
        rank = self._ranks[name] if name else NOBODY
        is_over = search != self._rules.search
        return News(self._epoch, self._version, cutoff_ms, rank, self._stop, self._hungry, is_over)

    async def offers(self, search: str, epoch: str, known: int, timeout_s: float) -> tuple[str, int, list[Found]]:
        """The plans that were taken after the first `known` ones, as soon as there are any or when the time is up."""
        if search != self._rules.search:
            return self._epoch, 0, []
        if epoch == self._epoch and known >= len(self._offers):
            await self._change(timeout_s)
        first = known if epoch == self._epoch else 0
        return self._epoch, len(self._offers), self._offers[first:]

    async def process_id(self) -> int:
        """Of the actor."""
        return os.getpid()

    def _tell(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def _change(self, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return
