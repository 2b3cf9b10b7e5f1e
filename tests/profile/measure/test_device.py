from __future__ import annotations

import pytest

from poseidon.errors import InputError

torch = pytest.importorskip("torch")

from poseidon.profile.measure.device import BACKENDS, Device, find_device  # noqa: E402

pytestmark = pytest.mark.torch


def test_the_cpu_is_there_and_has_a_name() -> None:
    device = find_device("cpu", 1)
    assert device == Device("cpu", 1)
    assert device.torch_device == torch.device("cpu")
    assert device.backend == "gloo"
    assert device.name
    device.select()
    device.synchronize()
    device.release()


@pytest.mark.parametrize("kind", ["cuda", "npu"])
def test_a_device_that_is_not_there_is_refused(kind: str) -> None:
    if kind in BACKENDS and getattr(torch, kind, None) is not None and getattr(torch, kind).is_available():
        pytest.skip(f"this machine has {kind} devices")
    with pytest.raises(InputError, match=f"torch finds no {kind} device"):
        find_device(kind, 0)


def test_an_accelerator_answers_to_what_the_code_calls() -> None:
    """Without one at hand: torch.cuda has every name, and torch_npu gives torch.npu the same ones."""
    for name in (
        "device_count",
        "empty_cache",
        "get_device_name",
        "is_available",
        "max_memory_allocated",
        "memory_allocated",
        "reset_peak_memory_stats",
        "set_device",
        "synchronize",
    ):
        assert callable(getattr(torch.cuda, name))
