"""One operation of a pipeline stage: what it computes, on which micro-batch, in which chunk of the stage's layers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from poseidon.schedule.placement import Placement, place_of, virtual_stage

Kind = Literal["F", "B", "I", "W"]
"""F forward, B full backward, I its input part (sends the gradient upstream), W its weight part."""

KINDS: tuple[Kind, ...] = ("F", "B", "I", "W")

_OPERATION = re.compile(r"([FBIW])([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_STAGED = re.compile(r"([0-9]{1,9})([FBIW])([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Action:
    """One operation: `kind` on micro-batch `microbatch` (0-based) in chunk `chunk` of the stage (0-based)."""

    kind: Kind
    microbatch: int
    chunk: int = 0

    def operation(self, num_chunks: int = 1) -> str:
        """The text of a stages file: ``F3``, or ``F3.1`` (micro-batch, chunk) when a stage has several chunks."""
        text = f"{self.kind}{self.microbatch}"
        return text if num_chunks == 1 and self.chunk == 0 else f"{text}.{self.chunk}"

    def staged(self, stage: int, num_stages: int, placement: Placement = "loop") -> str:
        """PyTorch's text, ``6F3``: virtual stage, kind, micro-batch."""
        return f"{virtual_stage(placement, num_stages, stage, self.chunk)}{self.kind}{self.microbatch}"


def parse_operation(text: str) -> Action:
    """Reads ``F3`` or ``F3.1``; raises ValueError with the accepted form."""
    match = _OPERATION.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not an operation: give a kind (F, B, I or W), a micro-batch and, with chunks, the chunk, "
            "as in 'F0', 'B3' or 'F0.1'"
        )
    kind, microbatch, chunk = match.groups()
    return Action(cast(Kind, kind), int(microbatch), int(chunk or 0))


def parse_staged(text: str, num_stages: int, placement: Placement = "loop") -> tuple[int, Action]:
    """Reads ``6F3`` as (stage, action) for `num_stages` stages; raises ValueError with the accepted form."""
    match = _STAGED.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not an action: give virtual stage, kind (F, B, I or W) and micro-batch, as in '2F0'"
        )
    stage, chunk = place_of(placement, num_stages, int(match[1]))
    return stage, Action(cast(Kind, match[2]), int(match[3]), chunk)
