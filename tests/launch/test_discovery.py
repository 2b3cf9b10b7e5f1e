"""The cluster that machines describe themselves, with programs in place of nvidia-smi, npu-smi, torch and ssh.

No accelerator is here: the programs print what the real ones are documented to print.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.inputs.accelerator import Accelerator
from poseidon.launch.choices import Choices
from poseidon.launch.device_query import ascend_names
from poseidon.launch.discover import discovered_cluster
from poseidon.launch.experiment import KnownCluster
from poseidon.launch.hosts import host_names
from poseidon.launch.launcher import parsed_call
from tests.launch.conftest import ACCELERATORS, Ran, write_program

NPU_MAP = """\
\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Name
\t0                              0                              0                              Ascend 910B2
\t0                              1                              -                              Mcu
\t1                              0                              1                              Ascend 910B2
\t1                              1                              -                              Mcu
"""


def printing(text: str, status: int = 0) -> str:
    return f"#!/bin/sh\ncat <<'END'\n{text.rstrip()}\nEND\nexit {status}\n"


NVIDIA = """#!/bin/sh
[ "$*" = "--query-gpu=name --format=csv,noheader" ] || exit 3
{body}
"""


def nvidia_smi(*names: str) -> str:
    return NVIDIA.format(body="\n".join(f"echo {shlex.quote(name)}" for name in names))


SSH = """#!{python}
import os, subprocess, sys
arguments = sys.argv[1:]
assert arguments[:4] == ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"] and arguments[4] == "--", arguments
host, command = arguments[5:]
if host == "gone":
    sys.stderr.write("ssh: connect to host gone port 22: Connection refused\\n")
    sys.exit(255)
path = os.path.join(os.environ["MACHINES"], host) + ":" + os.defpath
sys.exit(subprocess.run(["sh", "-c", command], env={{"PATH": path}}).returncode)
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives this machine (or, with a `host`, another one behind ssh) programs; nothing else is on the PATH."""
    here, others = tmp_path / "here", tmp_path / "machines"
    here.mkdir()
    for name in ("sh", "cat", "echo"):
        (here / name).symlink_to(f"/bin/{name}")
    write_program(here / "ssh", SSH.format(python=sys.executable))
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.setenv("MACHINES", str(others))

    def give(host: str | None = None, **programs: str) -> None:
        for name, text in programs.items():
            write_program((here if host is None else others / host) / name.replace("_", "-"), text)

    return give


def found(*launcher: str, **choices: Any) -> KnownCluster:
    call = parsed_call(["torchrun", *launcher, "train.py"], {})
    assert call is not None
    return discovered_cluster(call, Choices(**choices))


def shape(known: KnownCluster) -> list[tuple[str, int]]:
    return [(group.accelerator, group.devices) for group in known.cluster.nodes for _ in range(group.count)]


def test_nvidia_smi_tells_the_devices(machine: Callable[..., None]) -> None:
    machine(nvidia_smi=nvidia_smi(*["NVIDIA A100-SXM4-80GB"] * 8))
    known = found("--nproc-per-node", "8")
    assert shape(known) == [("a100-sxm-80gb", 8)]
    assert known.cluster.accelerators["a100-sxm-80gb"].peak_tflops == 312
    assert known.notes == ("this machine has 8 x a100-sxm-80gb",)
    assert shape(found("--nproc-per-node", "auto")) == [("a100-sxm-80gb", 8)]
    assert shape(found("--nproc-per-node", "4")) == [("a100-sxm-80gb", 4)]


def test_npu_smi_tells_the_chips_without_the_management_ones(machine: Callable[..., None]) -> None:
    machine(npu_smi=f'#!/bin/sh\n[ "$*" = "info -m" ] || exit 3\n{printing(NPU_MAP).partition(chr(10))[2]}')
    assert shape(found("--nproc-per-node", "2")) == [("ascend-910b2", 2)]


def test_two_chips_of_one_card_are_two_devices() -> None:
    assert ascend_names(
        NPU_MAP.replace("1                              -  ", "1                              7  ")
    ) == (
        "Ascend 910B2",
        "Mcu",
        "Ascend 910B2",
        "Mcu",
    )
    assert ascend_names("") == ()


def test_torch_is_asked_last(machine: Callable[..., None]) -> None:
    machine(
        nvidia_smi=printing("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9),
        python3='#!/bin/sh\n[ "$1" = -c ] || exit 3\necho "AMD Instinct MI300X"\necho "AMD Instinct MI300X"\n',
    )
    assert shape(found("--nproc-per-node", "2")) == [("mi300x", 2)]


def test_other_hosts_are_asked_by_ssh_and_this_one_is_not(machine: Callable[..., None]) -> None:
    machine(nvidia_smi=nvidia_smi(*["NVIDIA RTX A6000"] * 4))
    machine("far", nvidia_smi=nvidia_smi(*["NVIDIA H100 80GB HBM3"] * 8))
    machine("npu", npu_smi=printing(NPU_MAP))
    call = ("--nnodes", "3", "--node-rank", "1", "--nproc-per-node", "4")
    known = found(*call, hosts=("far", "here", "npu"), inter_node_gbps=100.0)
    assert shape(known) == [("h100-sxm-80gb", 8), ("rtx-a6000", 4), ("ascend-910b2", 2)]
    assert known.cluster.links.inter_node.bandwidth_gbps == 100
    assert known.cluster.links.inter_node.shared_by == "node"
    assert "links between devices of a node (ascend-910b2, rtx-a6000) are taken for PCIe 4.0 x16" in known.notes


@pytest.mark.parametrize(
    ("programs", "launcher", "choices", "message"),
    [
        (
            {},
            (),
            {},
            "this machine: no accelerators were found (nvidia-smi is not there, npu-smi is not there, python3",
        ),
        ({"nvidia_smi": "NVIDIA Quantum 9000"}, (), {}, "has a device 'NVIDIA Quantum 9000' whose speed is not known"),
        ({"nvidia_smi": "NVIDIA A10,NVIDIA H200"}, (), {}, "nodes with several types need --cluster FILE"),
        ({"nvidia_smi": "NVIDIA A10"}, ("--nproc-per-node", "2"), {}, "2 processes are asked for; this machine has 1"),
        ({"nvidia_smi": "NVIDIA A10"}, ("--nnodes", "2"), {}, "no hosts are given for 2 nodes"),
        ({"nvidia_smi": "NVIDIA A10"}, ("--nnodes", "2"), {"hosts": ("a", "b")}, "--inter-node-gbps: is needed"),
        (
            {"nvidia_smi": "NVIDIA A10"},
            ("--nnodes", "2"),
            {"hosts": ("here", "gone"), "inter_node_gbps": 10.0},
            "gone: cannot be reached by ssh without a password (ssh: connect to host gone port 22: Connection refused)",
        ),
    ],
)
def test_what_is_not_known_is_asked_for(
    machine: Callable[..., None],
    programs: dict[str, str],
    launcher: tuple[str, ...],
    choices: dict[str, Any],
    message: str,
) -> None:
    machine(**{name: nvidia_smi(*text.split(",")) for name, text in programs.items()})
    with pytest.raises(InputError) as refused:
        found(*launcher, **choices)
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["-oProxyCommand=touch PWNED", "a\nb", "a;b", "$(x)", "a b", "", "-", "a@b", "../a"])
def test_a_host_is_a_name_and_nothing_else(name: str) -> None:
    with pytest.raises(InputError, match="is not the name or address of a host"):
        host_names(f"good,{name}")


def test_a_name_from_a_driver_stays_a_name(machine: Callable[..., None], tmp_path: Path) -> None:
    machine(nvidia_smi=nvidia_smi("$(touch PWNED)`touch PWNED`\x1b[31m"))
    with pytest.raises(InputError) as refused:
        found()
    assert "\x1b" not in str(refused.value)
    assert not list(tmp_path.rglob("PWNED"))


def test_shipped_accelerators_are_those_of_the_configurations() -> None:
    file = Path(__file__).parents[2] / "poseidon" / "launch" / "data" / "accelerators.yaml"
    shipped = yaml.safe_load(file.read_text())["accelerators"]
    assert len(shipped) > 20
    for name, entry in shipped.items():
        assert entry.pop("devices"), name
        original = yaml.safe_load((ACCELERATORS / f"{name}.yaml").read_text())
        assert Accelerator.model_validate(entry) == Accelerator.model_validate(original), name


def test_the_launch_plans_for_what_it_finds(
    cli: Callable[..., Ran], machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(nvidia_smi=nvidia_smi(*["NVIDIA L40S"] * 4))
    words = (
        "torchrun --nproc-per-node gpu train.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
        "--seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 32 --bf16 "
        "--vocab-size 1000"
    )
    ran = cli("launch", "--dry-run", "--json", "--schedule", "1f1b", "--", *words.split())
    assert ran.status == 0, ran.err
    [result] = ran.data["launches"]
    assert result["plan"]["inputs"]["cluster"]["accelerators"]["l40s"]["peak_tflops"] == 362
    assert "Note: this machine has 4 x l40s" in ran.err
    assert os.environ["PATH"].endswith("here")
