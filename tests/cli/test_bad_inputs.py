"""Bad inputs: one clear line each, exit status 2, never a traceback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

SLOW = {"peak_tflops": 100.0, "memory_gb": 12.0}
COMMANDS = ("search", "count", "costs")

FIELDS: Mapping[str, tuple[dict[str, dict[str, Any]], str, str]] = {
    "unknown key": ({"training": {"schedule": ["1f1b"]}}, "training", "did you mean 'schedules'?"),
    "wrong type": ({"training": {"global_batch_size": "many"}}, "training.global_batch_size", "a whole number"),
    "accelerator not declared": (
        {"cluster": {"nodes": [{"accelerator": "H100", "count": 1, "devices": 8}]}},
        "cluster.nodes[0].accelerator",
        "H100",
    ),
    "zero devices": (
        {"cluster": {"nodes": [{"accelerator": "fast", "count": 1, "devices": 0}]}},
        "cluster.nodes[0].devices",
        "at least 1",
    ),
    "batch not divisible by any micro-batch": (
        {"training": {"global_batch_size": 7, "micro_batch_sizes": [2, 4]}},
        "training.global_batch_size",
        "not divisible by any DP x micro-batch",
    ),
    "batch not divisible by any DP": (
        {
            "training": {"global_batch_size": 5, "micro_batch_sizes": [1]},
            "model": {"num_layers": 2, "num_attention_heads": 1},
        },
        "training.global_batch_size",
        "not divisible by any DP x micro-batch",
    ),
    "heads not divisible by any TP": (
        {"model": {"num_attention_heads": 3, "hidden_size": 96}, "search": {"fixed_tp": 2}},
        "search.fixed_tp",
        "does not divide the model's 3 attention heads",
    ),
    "negative bandwidth": (
        {"cluster": {"links": {"intra_node": {"bandwidth_gbps": -1.0}, "inter_node": {"bandwidth_gbps": 1.0}}}},
        "cluster.links.intra_node.bandwidth_gbps",
        "too small",
    ),
    "huge number": ({"model": {"hidden_size": 10**30}}, "model.hidden_size", "too large"),
    "huge rate": (
        {"cluster": {"accelerators": {"fast": {"peak_tflops": 1e300, "memory_gb": 16.0}, "slow": SLOW}}},
        "cluster.accelerators.fast.peak_tflops",
        "too large",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", FIELDS)
def test_a_bad_field_is_one_line(cli: Any, write_experiment: Callable[..., Path], command: str, case: str) -> None:
    changes, field, message = FIELDS[case]
    ran = cli(command, write_experiment(**changes))
    assert ran.status == 2
    assert ran.out == ""
    [line] = ran.mistakes
    assert "example.yaml" in line
    assert field in line
    assert message in line


FILES: Mapping[str, tuple[bytes, str]] = {
    "not YAML": (b"model: [1, 2", "example.yaml"),
    "not a mapping": (b"- 1\n- 2\n", "does not hold a mapping"),
    "empty": (b"", "is empty"),
    "binary": (b"\xff\xfe\x00\x01", "not a text file"),
    "cyclic anchors": (b"model: &a\n  name: *a\n", "example.yaml"),
    "alias bomb": (
        b"a: &a [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 9)) for i in range(8)),
        "example.yaml",
    ),
    "key twice": (b"model: a\nmodel: b\n", "model"),
    "infinite": (b"training: {global_batch_size: .inf}\n", "global_batch_size"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_in_plain_words(cli: Any, tmp_path: Path, command: str, case: str) -> None:
    content, message = FILES[case]
    path = tmp_path / "example.yaml"
    path.write_bytes(content)
    ran = cli(command, path)
    assert ran.status == 2
    assert ran.out == ""
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert all("example.yaml" in line for line in ran.mistakes)


@pytest.mark.parametrize("command", [*COMMANDS, "solve", "simulate", "verify"])
def test_a_missing_file_is_one_line(cli: Any, tmp_path: Path, command: str) -> None:
    ran = cli(command, tmp_path / "missing.yaml")
    assert ran.status == 2
    [line] = ran.mistakes
    assert line.endswith("missing.yaml: no such file")


@pytest.mark.parametrize("command", [*COMMANDS, "simulate", "verify"])
def test_a_file_of_100_mb_is_not_read(cli: Any, tmp_path: Path, command: str) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    ran = cli(command, path)
    assert ran.status == 2
    [line] = ran.mistakes
    assert "too large" in line


@pytest.mark.parametrize("command", [*COMMANDS, "simulate", "verify"])
def test_a_directory_is_no_file(cli: Any, tmp_path: Path, command: str) -> None:
    ran = cli(command, tmp_path)
    assert ran.status == 2
    assert "is a directory" in ran.err


def test_all_mistakes_of_all_files_come_together(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("num_layers: 0\nhidden_size: 64\nvocab_size: 10\nffn_hidden_size: 64\n")
    (tmp_path / "example.yaml").write_text("model: model.yaml\ncluster: missing.yaml\ntraining: {seq_length: 8}\n")
    ran = cli("search", tmp_path / "example.yaml")
    assert ran.status == 2
    assert len(ran.mistakes) == 4
    for part in ("num_layers", "num_attention_heads", "missing.yaml: no such file", "training.global_batch_size"):
        assert part in ran.err
