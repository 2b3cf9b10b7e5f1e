"""An accelerator type: what one device can compute, hold and move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon.inputs.efficiencies import Efficiencies
from poseidon.inputs.fields import Efficiency, MemoryBandwidthGbPerS, MemoryGb, Name, Tflops
from poseidon.inputs.file_model import FileModel, Problem, is_number
from poseidon.inputs.links import LinkOverrides

DEFAULT_GB_PER_S_PER_TFLOPS = 4.0
"""Memory bandwidth of a device that does not state it, per TFLOPS of peak: H100 SXM has 3350 / 989 = 3.4, Ascend 910B2
1600 / 376 = 4.3, A100 SXM 2039 / 312 = 6.5 (vendors' data sheets, see configs/accelerators)."""


class Accelerator(FileModel):
    """One type of device; all devices of a type are alike."""

    peak_tflops: Tflops
    """Dense matrix peak in the training precision, 1e12 FLOP/s."""
    memory_gb: MemoryGb
    """Device memory, 1e9 bytes."""
    usable_memory_gb: MemoryGb | None = None
    """What the training process may use of it (the rest is held by drivers or others); absent: all of `memory_gb`."""
    memory_bandwidth_gb_per_s: MemoryBandwidthGbPerS | None = None
    """Device memory bandwidth, 1e9 bytes/s; absent: `DEFAULT_GB_PER_S_PER_TFLOPS` x `peak_tflops`."""
    compute_efficiency: Efficiency | None = None
    """Fraction of the peak that large matrix products achieve; absent: the analytic profile's default."""
    memory_efficiency: Efficiency = 0.8
    """Fraction of the memory bandwidth that element-wise operations achieve."""
    calibration: Efficiencies = Efficiencies()
    """Calibrated parameters of the analytic profile (`poseidon calibrate` writes them)."""
    vendor: Name | None = None
    """Decides which devices can talk (see `Cluster.communication`); absent: no restriction is known."""
    links: LinkOverrides = LinkOverrides()
    """Links of this type's devices that differ from the cluster's, e.g. NVLink beside PCIe."""

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """The usable memory is a part of the memory."""
        memory_gb, usable_gb = data.get("memory_gb"), data.get("usable_memory_gb")
        if is_number(memory_gb) and is_number(usable_gb) and usable_gb > memory_gb:
            yield Problem(("usable_memory_gb",), f"{usable_gb} GB is more than the device's memory_gb, {memory_gb} GB")

    @property
    def usable_memory_bytes(self) -> int:
        """Memory that the training process may use."""
        usable_gb = self.memory_gb if self.usable_memory_gb is None else self.usable_memory_gb
        return round(usable_gb * 1e9)

    @property
    def memory_bytes_per_s(self) -> float:
        """Memory bandwidth as stated, or by the documented default; without `memory_efficiency`."""
        stated = self.memory_bandwidth_gb_per_s
        return (DEFAULT_GB_PER_S_PER_TFLOPS * self.peak_tflops if stated is None else stated) * 1e9
