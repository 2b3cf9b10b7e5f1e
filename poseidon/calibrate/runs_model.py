"""What a file of measurements holds (docs/calibrate.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from poseidon.calibrate.prediction import Transfers
from poseidon.inputs.experiment_file import Reference
from poseidon.inputs.fields import Count, DevicesPerNode, Name
from poseidon.inputs.file_model import FileModel
from poseidon.inputs.links import Links

Use = Literal["fit", "hold out"]
Milliseconds = Annotated[float, Field(strict=True, gt=0, le=1e12)]


class System(FileModel):
    """The machines that runs were measured on."""

    devices_per_node: DevicesPerNode
    """Devices that TP may span; of a job with fewer devices, all lie on one node."""
    links: Links
    """Links inside and between nodes."""


class Run(FileModel):
    """One measured training job; `settings` replace the file's `training`."""

    name: Name
    model: Name
    """One of the file's `models`."""
    system: Name | None = None
    """One of the file's `systems` (default: the first)."""
    dp: Count = 1
    tp: Count = 1
    pp: Count = 1
    layers: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Layers of each stage (default: shared out evenly)."""
    transfers: Transfers = "overlapped"
    """Whether messages run beside computation, or stages stand still for each (DeepSpeed's pipeline engine)."""
    iteration_ms: Milliseconds
    use: Use | None = None
    """Whether the fit sees the run (default: all runs without it do, or every third is held out; see docs)."""
    group: str = ""
    note: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Whatever else a run says: fields of an experiment's `training`."""


class Matmul(FileModel):
    """One measured matrix product, m x k by k x n, in the training precision."""

    m: Count
    k: Count
    n: Count
    ms: Milliseconds | None = None
    tflops: Annotated[float, Field(strict=True, gt=0, le=1e6)] | None = None
    """Instead of `ms`."""
    use: Use | None = None


class RunsFile(FileModel):
    """The file: an accelerator, models, systems, and what was measured."""

    accelerator: Reference
    """The accelerator that is calibrated: a path, or a mapping."""
    name: Name | None = None
    """What the accelerator is called (default: as its file)."""
    models: Annotated[dict[Name, Reference], Field(default_factory=dict, max_length=1_000)]
    systems: Annotated[dict[Name, System], Field(default_factory=dict, max_length=1_000)]
    training: dict[str, Any] = Field(default_factory=dict)
    """Settings that all runs share: fields of an experiment's `training`."""
    fit: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    """The parameters to fit (default: what the runs can tell apart)."""
    runs: str | tuple[dict[str, Any], ...] = ()
    """The runs, or the path of a CSV file with one a row."""
    matmuls: str | tuple[dict[str, Any], ...] = ()
    """Matrix products, or the path of a CSV file with one a row."""


def run_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a run with everything that `Run` doesn't know moved to `settings`."""
    known = {key: value for key, value in row.items() if key in Run.model_fields and key != "settings"}
    return {**known, "settings": {key: value for key, value in row.items() if key not in Run.model_fields}}
