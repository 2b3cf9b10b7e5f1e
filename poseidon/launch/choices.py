"""What the user chooses beside the command: the options of `poseidon launch`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from poseidon.launch.framework import FrameworkName


@dataclass(frozen=True)
class Choices:
    """Absent ones are None or empty. Paths are absolute: a script may change the directory."""

    framework: FrameworkName | None = None
    framework_version: str | None = None
    cluster: str | None = None
    hosts: tuple[str, ...] = ()
    """Of every node, in the order of the user's node ranks."""
    inter_node_gbps: float | None = None
    profile: str | None = None
    measure: bool = False
    plan: str | None = None
    recompute: str | None = None
    schedules: tuple[str, ...] = ()
    num_chunks: tuple[int, ...] = ()
    micro_batch_sizes: tuple[int, ...] = ()
    fixed_dp: int | None = None
    fixed_tp: int | None = None
    fixed_pp: int | None = None
    time_limit_s: float | None = None
    vocab_size: int | None = None
    accept: tuple[str, ...] = ()
    """Flags that pass although a plan does not count them."""
    allow_checkpoint_change: bool = False
    use_cache: bool = True
    out: str | None = None
    dry_run: bool = False
    quiet: bool = False
    as_json: bool = False

    def text(self) -> str:
        """As JSON, for the process that a shim starts."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Choices:
        """What `text` gave."""
        data: dict[str, Any] = json.loads(text)
        lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
        return cls(**(data | lists))
