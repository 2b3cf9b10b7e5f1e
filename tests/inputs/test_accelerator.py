from __future__ import annotations

import pytest

from poseidon.inputs.accelerator import DEFAULT_GB_PER_S_PER_TFLOPS, Accelerator


def test_all_memory_is_usable_unless_the_file_says_less() -> None:
    assert Accelerator(peak_tflops=312, memory_gb=80).usable_memory_bytes == 80_000_000_000
    assert Accelerator(peak_tflops=312, memory_gb=80, usable_memory_gb=76.5).usable_memory_bytes == 76_500_000_000


def test_the_memory_bandwidth_has_a_documented_default() -> None:
    assert Accelerator(peak_tflops=312, memory_gb=80, memory_bandwidth_gb_per_s=2039).memory_bytes_per_s == 2039e9
    default = Accelerator(peak_tflops=300, memory_gb=80).memory_bytes_per_s
    assert default == pytest.approx(DEFAULT_GB_PER_S_PER_TFLOPS * 300e9)
