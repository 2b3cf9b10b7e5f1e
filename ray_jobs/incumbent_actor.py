"""The actor that holds the time to beat (the paper's T_min) with the plan that reaches it, and tells every worker.

Workers offer plans; whoever waits is answered at once when something changes. What an actor that died knew comes back
from its checkpoint, and from every worker and the driver, who offer again what they found (`epoch` tells them).
"""

from __future__ import annotations

import asyncio
import math
import os
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from poseidon.search._incumbent_cell import NOBODY
from poseidon.search.incumbents import Incumbents, ranks_of
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

    search: int
    """Its number; a later search of the same driver has a higher one, so that calls may arrive in any order."""
    names: tuple[str, ...]
    """Of the outer choices."""
    count: int
    """Plans that are asked for."""
    tie: float
    """Fraction up to which times are equal."""
    shares: bool
    """Whether workers are told a time to beat."""


NO_SEARCH = Rules(0, (), 1, 0.0, False)


class IncumbentActor:
    """Keeps the best plans of one search at a time; an asynchronous actor."""

    def __init__(self, checkpoint: str) -> None:
        """`checkpoint` is a file on this actor's node; where it exists, the actor goes on from it."""
        self._checkpoint = Path(checkpoint)
        self._epoch = os.urandom(8).hex()
        self._changed = asyncio.Event()
        self._version = 0
        self._early: list[tuple[int, Found]] = []
        self._set_rules(NO_SEARCH)
        if self._checkpoint.exists():
            rules, is_over, offers = pickle.loads(self._checkpoint.read_bytes())
            self._set_rules(rules)
            self._is_over = is_over
            for offer in offers:
                self._incumbents.offer(offer, 0.0)
                self._offers.append(offer.found)

    def _set_rules(self, rules: Rules) -> None:
        self._rules = rules
        self._ranks = ranks_of(rules.names)
        self._incumbents: Incumbents[Offer] = Incumbents(rules.count, rules.tie)
        self._is_over = self._stop = self._hungry = False
        self._offers: list[Found] = []

    async def begin(self, rules: Rules) -> None:
        """Begins with a search; whoever waits for news of the one before is told that it is over."""
        if rules.search > self._rules.search:
            self._set_rules(rules)
            self._save()
            self._tell()
            early, self._early = self._early, []
            for search, found in early:
                await self.offer(search, found)

    async def end(self, search: int) -> None:
        """Ends a search: whoever waits for news of it is told so."""
        if search >= self._rules.search and not self._is_past(search):
            self._set_rules(replace(NO_SEARCH, search=search))
            self._is_over = True
            self._save()
            self._tell()

    def _is_past(self, search: int) -> bool:
        return search < self._rules.search or (search == self._rules.search and self._is_over)

    async def offer(self, search: int, found: Found) -> None:
        """Takes a plan; the same one again changes nothing, and one that arrives before its search waits for it."""
        if search > self._rules.search:
            self._early.append((search, found))
        if search != self._rules.search or self._is_over:
            return
        if self._incumbents.offer(Offer(self._rules.names[found.problem], found), 0.0):
            self._offers.append(found)
            self._tell()
            self._save()

    def _save(self) -> None:
        self._checkpoint.parent.mkdir(mode=0o700, exist_ok=True)  # a new actor may be on another node
        unfinished = self._checkpoint.with_suffix(".new")
        unfinished.write_bytes(pickle.dumps((self._rules, self._is_over, self._incumbents.solutions)))
        unfinished.rename(self._checkpoint)

    async def set_flags(self, search: int, stop: bool, hungry: bool) -> None:
        """Whether workers are to hand back what they have, at once or to share it out."""
        if search == self._rules.search and (stop, hungry) != (self._stop, self._hungry):
            self._stop, self._hungry = stop, hungry
            self._tell()

    async def news(self, search: int, epoch: str, version: int, timeout_s: float) -> News:
        """What holds now, as soon as it is another version than the one that is known, or when the time is up."""
        is_ahead = search > self._rules.search  # this actor is new and was not told of the search yet
        if is_ahead or (not self._is_past(search) and (epoch, version) == (self._epoch, self._version)):
            await self._change(timeout_s)
        is_present = search == self._rules.search
        name = self._incumbents.cutoff_name if self._rules.shares and is_present else ""
        return News(
            epoch=self._epoch,
            version=self._version,
            cutoff_ms=self._incumbents.cutoff_ms if name else math.inf,
            rank=self._ranks[name] if name else NOBODY,
            stop=self._stop and is_present,
            hungry=self._hungry and is_present,
            is_over=self._is_past(search),
        )

    async def offers(self, search: int, epoch: str, known: int, timeout_s: float) -> tuple[str, int, list[Found]]:
        """The plans that were taken after the first `known` ones, as soon as there are any or when the time is up."""
        if epoch == self._epoch and (search != self._rules.search or known >= len(self._offers)):
            await self._change(timeout_s)
        if search != self._rules.search:
            return self._epoch, 0, []
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
