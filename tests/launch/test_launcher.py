from __future__ import annotations

import pytest

from poseidon.errors import InputError
from poseidon.launch.launcher import LauncherCall, parsed_call
from poseidon.launch.shim import script_index


def call(text: str, **environment: str) -> LauncherCall:
    read = parsed_call(text.split(), environment)
    assert read is not None
    return read


@pytest.mark.parametrize(
    "text",
    [
        "torchrun t.py --x 1",
        "/opt/env/bin/torchrun --nnodes=2 --node_rank 1 t.py --nnodes 7",
        "python -m torch.distributed.launch --nproc_per_node=8 t.py",
        "python3.11 -u -X dev -W ignore -m torch.distributed.run t.py",
        "python -Bum torch.distributed.run --nnodes 1 t.py",
        "python -mtorch.distributed.run -m package.train --x",
        "python /usr/bin/torchrun -r3 -t 1:2 t.py",
    ],
)
def test_a_launcher_is_recognised_and_its_words_stay(text: str) -> None:
    read = call(text)
    assert " ".join(read.words) == text
    assert read.script in ("t.py", "package.train")


@pytest.mark.parametrize(
    "text",
    [
        "python t.py -m torch.distributed.run",
        "python -c torch.distributed.run",
        "python -m torch.distributed.runner t.py",
        "python -m",
        "python",
        "pythonic -m torch.distributed.run t.py",
        "torchrunner t.py",
        "bash torchrun",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    words = text.split()
    assert script_index(words[0], words[1:]) is None
    assert parsed_call(words, {}) is None


def test_options_are_read_in_both_spellings_and_from_the_environment() -> None:
    read = call("torchrun --nnodes 4 --nproc_per_node=8 --node-rank=2 --master_addr h t.py")
    assert (read.num_nodes, read.num_processes, read.node_rank, read.backend) == (4, 8, 2, "static")
    read = call("torchrun t.py", PET_NNODES="2:2", PET_NPROC_PER_NODE="gpu", PET_NODE_RANK="1")
    assert (read.num_nodes, read.num_processes, read.node_rank) == (2, None, 1)
    assert (call("torchrun t.py").num_nodes, call("torchrun t.py").num_processes) == (1, 1)
    assert call("torchrun --standalone t.py").backend == "c10d"


def test_an_option_keeps_its_spelling_when_it_changes() -> None:
    read = call("torchrun --node_rank=0 --nnodes 2 t.py -x").with_option("--node-rank", "1")
    assert " ".join(read.words) == "torchrun --node_rank=1 --nnodes 2 t.py -x"
    assert " ".join(read.with_option("--master-addr", "h").words).endswith("--nnodes 2 --master-addr h t.py -x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torchrun --nproc 8 t.py", "--nproc: write --nproc-per-node in full"),
        ("torchrun --frobnicate 8 t.py", "--frobnicate: it is not an option of torchrun that is known"),
        ("torchrun --nnodes 2", "torchrun: starts no script"),
        ("torchrun --nnodes", "--nnodes: needs a value"),
    ],
)
def test_what_can_not_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parsed_call(text.split(), {})
    assert message in str(refused.value)


@pytest.mark.parametrize("options", ["--nnodes 1:4", "--nnodes x", "--nnodes 2 --node-rank 2", "--nproc-per-node many"])
def test_a_plan_needs_numbers(options: str) -> None:
    read = call(f"torchrun {options} t.py")
    with pytest.raises(InputError):
        _ = (read.num_nodes, read.node_rank, read.num_processes)
