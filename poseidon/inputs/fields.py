"""Bounded field types: every number of a file has an accepted range, so that no later computation overflows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
"""A whole number of things, at least one."""

CountOrZero = Annotated[int, Field(strict=True, ge=0, le=10_000_000)]
"""A whole number of things, possibly none."""

LayerCount = Annotated[int, Field(strict=True, ge=1, le=10_000)]
"""A number of model layers."""

NodeCount = Annotated[int, Field(strict=True, ge=1, le=100_000)]
"""A number of nodes (machines) of a group."""

DevicesPerNode = Annotated[int, Field(strict=True, ge=1, le=1_024)]
"""A number of devices of one node."""

BandwidthGbps = Annotated[float, Field(strict=True, ge=1e-3, le=1e6)]
"""A link's bandwidth in one direction, 1e9 bit/s."""

LatencyUs = Annotated[float, Field(strict=True, ge=0, le=1e7)]
"""A link's latency, microseconds."""

Tflops = Annotated[float, Field(strict=True, ge=1e-3, le=1e6)]
"""A rate of computation, 1e12 floating-point operations a second."""

MemoryGb = Annotated[float, Field(strict=True, ge=1e-3, le=1e6)]
"""An amount of memory, 1e9 bytes."""

MemoryBandwidthGbPerS = Annotated[float, Field(strict=True, ge=1e-3, le=1e7)]
"""A memory's bandwidth, 1e9 bytes a second."""

Efficiency = Annotated[float, Field(strict=True, ge=1e-3, le=1)]
"""An achieved fraction of a peak."""

Switch = Annotated[bool, Field(strict=True)]
"""true or false."""

PRINTABLE = r"^[^\p{C}\p{Zl}\p{Zp}]+$"
"""As `str.isprintable`: no control codes of a terminal, no marks that turn the direction of the text around it."""

Name = Annotated[str, Field(strict=True, min_length=1, max_length=100, pattern=PRINTABLE)]
"""A name: 1 to 100 printable characters."""
