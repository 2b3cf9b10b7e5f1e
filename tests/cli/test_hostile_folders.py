"""A folder for results that somebody prepared: its links lead to files of the user, which stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.inputs import load_experiment
from poseidon.profile import analytic_profile, write_profile

TEXT = "of the user"
Write = Callable[..., Path]


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A folder that no command was told of."""
    folder = tmp_path / "treasure"
    folder.mkdir()
    for name in ("file", "left.parquet", ".left.tmp"):
        (folder / name).write_text(TEXT)
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def is_untouched(treasure: Path) -> bool:
    return {path.name: path.read_text() for path in treasure.iterdir()} == dict.fromkeys(
        ("file", "left.parquet", ".left.tmp"), TEXT
    )


def test_a_link_in_place_of_a_file_is_replaced(cli: Any, write_experiment: Write, treasure: Path, out: Path) -> None:
    (out / "plan.json").symlink_to(treasure / "file")
    assert cli("search", write_experiment(), "--out", out, "-q").status == 0
    assert not (out / "plan.json").is_symlink()
    (out / "launch.sh").symlink_to(treasure / "file")
    assert cli("export", out / "plan.json", "--to", "megatron", "--out", out, "-q").status == 0
    assert (out / "launch.sh").read_text().startswith("#!")
    assert is_untouched(treasure)


def test_files_for_metis_replace_links(
    cli: Any, write_experiment: Write, treasure: Path, out: Path, tmp_path: Path
) -> None:
    write_profile(analytic_profile(load_experiment(write_experiment())), tmp_path / "profile.json")
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(yaml.safe_load(write_experiment().read_text())["model"]))
    (out / "DeviceType.fast_tp1_bs1.json").symlink_to(treasure / "file")
    model = ("--model", tmp_path / "model.yaml", "--out", out, "-q")
    assert cli("import", "--to", "metis", tmp_path / "profile.json", *model).status == 0
    assert not (out / "DeviceType.fast_tp1_bs1.json").is_symlink()
    assert is_untouched(treasure)


@pytest.mark.parametrize(
    ("link", "target"), [("search.journal", "file"), ("search.journal", "missing"), ("search.journal", ".")]
)
@pytest.mark.parametrize("resume", [(), ("--resume",)], ids=["", "resume"])
def test_a_search_keeps_no_journal_through_a_link(
    cli: Any, write_experiment: Write, treasure: Path, out: Path, link: str, target: str, resume: tuple[str, ...]
) -> None:
    (out / link).symlink_to(treasure / target)
    ran = cli("search", write_experiment(), "--out", out, *resume)
    assert (ran.status, ran.out) == (2, "")
    assert ran.mistakes == [f"{out / link}: is a link to another place; remove it, or give another folder"]
    assert is_untouched(treasure)


@pytest.mark.parametrize(("link", "target"), [("runs", "."), (".lock", "file"), (".lock", "missing")])
def test_a_sweep_keeps_nothing_through_a_link(
    cli: Any, write_experiment: Write, treasure: Path, out: Path, tmp_path: Path, link: str, target: str
) -> None:
    write_experiment()
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump({"experiment": "example.yaml", "axes": {"search.seed": [0]}}))
    (out / link).symlink_to(treasure / target)
    for options in ((), ("--restart",)):
        ran = cli("sweep", tmp_path / "sweep.yaml", "--out", out, *options)
        assert (ran.status, ran.out) == (2, "")
        assert "is a link to another place" in ran.err
        assert is_untouched(treasure)


def test_an_export_does_not_follow_a_link_into_another_folder(
    cli: Any, write_experiment: Write, treasure: Path, out: Path, tmp_path: Path
) -> None:
    assert cli("search", write_experiment(), "--out", tmp_path, "-q").status == 0
    (out / "train").symlink_to(treasure)
    ran = cli("export", tmp_path / "plan.json", "--to", "flagscale", "--out", out)
    assert ran.status == 2
    assert f"{out / 'train'}: is a link to another place" in ran.err
    assert is_untouched(treasure)


def test_a_comparison_does_not_follow_a_link_into_another_folder(
    cli: Any, write_experiment: Write, treasure: Path, out: Path
) -> None:
    (out / "exact").symlink_to(treasure)
    ran = cli("compare", write_experiment(), "--policy", "exact", "--out", out)
    assert ran.status == 2
    assert f"{out / 'exact'}: is a link to another place" in ran.err
    assert is_untouched(treasure)


def test_the_folder_itself_may_be_a_link(cli: Any, write_experiment: Write, out: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to(out)
    assert cli("search", write_experiment(), "--out", tmp_path / "runs", "-q").status == 0
    assert (out / "plan.json").exists()
