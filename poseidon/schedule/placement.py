"""Which stage runs which part of the model, where stages hold several chunks of layers."""

from __future__ import annotations

from typing import Literal

Placement = Literal["loop", "v"]
"""How the chunks run through the stages: ``loop`` starts each at stage 0 again, ``v`` turns round at the ends.

The chunks in pipeline order are *virtual stages* 0, 1, ...: activations run from one to the next, gradients back.
"""


def virtual_stage(placement: Placement, num_stages: int, stage: int, chunk: int) -> int:
    """The virtual stage that is chunk `chunk` of stage `stage`; with ``v`` odd chunks count from the last stage."""
    turned = placement == "v" and chunk % 2 == 1
    return chunk * num_stages + (num_stages - 1 - stage if turned else stage)


def place_of(placement: Placement, num_stages: int, virtual: int) -> tuple[int, int]:
    """The (stage, chunk) that is virtual stage `virtual`."""
    chunk, place = divmod(virtual, num_stages)
    return (num_stages - 1 - place if placement == "v" and chunk % 2 == 1 else place), chunk
