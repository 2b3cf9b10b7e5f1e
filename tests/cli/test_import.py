"""The command: what it writes, says, and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.profile import read_profile

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "profile" / "importers" / "data"
MODEL = ROOT / "configs" / "models" / "opt-350.yaml"
SAILOR = DATA / "sailor" / "OPT-350_A100-40.json"
GIVEN = ("--model", MODEL, "--seq-length", "2048")


def test_it_writes_a_profile_and_shows_its_rows(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "new" / "profile.json"
    ran = cli("import", SAILOR, *GIVEN, "--out", out)

    assert ran.status == 0
    assert ran.err == ""
    profile = read_profile(out)
    assert len(profile.layers) == len(profile.head) == 12
    assert profile.source.startswith(
        "imported from sailor files (eth-easl/sailor cf2c8e3cc5); sailor: times as they are"
    )
    first = next(line for line in ran.out.splitlines() if line.startswith("A100-40"))
    assert first.split() == ["A100-40", "1", "1", "2.334", "5.909", "25.2", "71.4", "0.40", "8.50"]
    assert "- model: weights and activations of dense, embedding, head by the formulas of docs/profile.md" in ran.out
    assert ran.out.endswith(f"Written to {out}\n")


def test_json_is_the_profile_alone(cli: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "profile.json"
    ran = cli("import", "sailor", SAILOR, *GIVEN, "--json", "--out", out)

    assert ran.status == 0
    assert ran.data == json.loads(out.read_text(encoding="utf-8"))
    assert "A100-40" in ran.err


def test_quiet_says_nothing(cli: Callable[..., Any], tmp_path: Path) -> None:
    ran = cli("import", SAILOR, *GIVEN, "-q", "--out", tmp_path / "profile.json")
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_missing_configurations_and_filled_rows_are_listed(cli: Callable[..., Any], tmp_path: Path) -> None:
    rtx = DATA / "sailor" / "OPT-350_RTX-3090.json"
    ran = cli("import", rtx, *GIVEN, "--out", tmp_path / "profile.json")
    assert "- missing: RTX-3090 at TP 1 with micro-batches of 16, 32, 64" in ran.out

    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "name: c\naccelerators: {RTX-3090: {peak_tflops: 71, memory_gb: 24}}\n"
        "nodes: [{accelerator: RTX-3090, count: 1, devices: 8}]\n"
        "links: {intra_node: {bandwidth_gbps: 100, latency_us: 5}, inter_node: {bandwidth_gbps: 10, latency_us: 5}}\n",
        encoding="utf-8",
    )
    out = tmp_path / "filled.json"
    ran = cli("import", rtx, *GIVEN, "--fill", "analytic", "--cluster", cluster, "--out", out)
    assert "- missing" not in ran.out
    filled = [line for line in ran.out.splitlines() if line.startswith("RTX-3090") and line.endswith("all")]
    assert len(filled) == 6
    rows = json.loads(out.read_text(encoding="utf-8"))["layers"]
    assert [row.get("source") for row in rows].count("analytic") == 6


def test_to_metis_and_back(cli: Callable[..., Any], tmp_path: Path) -> None:
    profile, folder, back = tmp_path / "profile.json", tmp_path / "metis", tmp_path / "back.json"
    assert cli("import", SAILOR, *GIVEN, "--out", profile).status == 0
    ran = cli("import", "--to", "metis", profile, "--model", MODEL, "--out", folder, "--json")
    assert ran.status == 0
    assert len(ran.data["files"]) == 12
    assert (folder / "DeviceType.A10040_tp2_bs4.json").is_file()

    assert cli("import", *sorted(folder.iterdir()), "--model", MODEL, "--out", back, "-q").status == 0
    before, after = read_profile(profile), read_profile(back)
    assert (after.layers, after.embedding, after.head) == (before.layers, before.embedding, before.head)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SAILOR], "give --out FILE (or --json) for the profile"),
        (["sailor", "--out", "x.json"], "give the files of sailor after its name"),
        (["--out", "x.json"], "missing argument '[FORMAT] FILES...'"),
        ([SAILOR, "--out", "x.json", "--rename", "A100"], "--rename A100: OLD=NEW is expected"),
        (["--to", "metis", SAILOR, "--out", "x"], "--to metis needs --model FILE"),
        (["--to", "metis", SAILOR, SAILOR, "--out", "x"], "--to takes one profile of poseidon's own"),
        ([SAILOR, "--out", "x.json", "--tp", "0"], "invalid value for '--tp'"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[Any], message: str, cli: Callable[..., Any]) -> None:
    ran = cli("import", *arguments)
    assert ran.status == 2
    assert len(ran.mistakes) == 1
    assert message in ran.err
    assert "see poseidon import --help" in ran.err


def test_bad_input_says_file_and_field(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "OPT-350_A100-40.json"
    path.write_text(SAILOR.read_text(encoding="utf-8").replace("0.001908", "-1", 2), encoding="utf-8")
    ran = cli("import", path, *GIVEN, "--out", tmp_path / "profile.json")

    assert ran.status == 2
    assert ran.mistakes == [
        f"{path}: 1.2.{layer}[0]: -1 is out of range: 0 to 1e+15 seconds is accepted" for layer in (2, 3)
    ]
    assert not (tmp_path / "profile.json").exists()


def test_a_place_that_can_not_be_written_is_one_line(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = cli("import", SAILOR, *GIVEN, "--out", tmp_path / "file" / "profile.json")
    assert ran.status == 2
    assert len(ran.mistakes) == 1
    assert "cannot be written" in ran.err
