"""What a person adds to the files: everything that a format may not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from poseidon.inputs.model import Model
from poseidon.inputs.training import Precision, Recompute

BACKWARD_RATIO = 2.0
"""Backward over forward where a format has only their sum or only the forward time: two matrix products for each of the
forward pass (Narayanan et al. 2021, arXiv 2104.04473, appendix); Galvatron's own `bct_fct_coe` is 2, too."""


@dataclass(frozen=True)
class ImportOptions:
    """The options of ``poseidon import``; None where nothing was given."""

    model: Model | None = None
    cluster: Path | None = None
    """A cluster file, for `fill`."""
    model_file: Path | None = None
    """The file of `model`, for `fill`."""
    accelerator: str | None = None
    """Of the files that don't name one."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """Accelerator names of the files, and what they are called in the cluster."""
    tp: int | None = None
    """Of the files that don't say."""
    micro_batch_sizes: tuple[int, ...] = ()
    """Of the files that don't say."""
    seq_length: int | None = None
    precision: Precision | None = None
    recompute: Recompute | None = None
    backward_ratio: float = BACKWARD_RATIO
    embedding_share: float = 0.0
    """The embedding's part of a time that a format gives for embedding and head together."""
    element_bytes: int | None = None
    """Bytes of a weight as the files count it."""
    state_bytes: float | None = None
    """Bytes of training state for each parameter that a format's memory numbers contain."""
    num_micro_batches: int | None = None
    pipeline_stages: int | None = None
    fill: bool = False
    """Rows that the files lack come from the analytic profile."""
