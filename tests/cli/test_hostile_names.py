"""Names from files reach tables, scripts, plots and messages: they stay names, and nothing else is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401  (writes its cache when it is loaded for the first time)
import pytest
import yaml

from poseidon.cli.export import FRAMEWORK_NAMES
from tests.audit import audited

NAMES = (
    "$(touch PWNED)",
    "`touch PWNED`",
    "; touch PWNED #",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    "../../../../PWNED",
    "/PWNED",
    "-rf",
    "--out=PWNED",
    "[/]",
    "[link=file:///PWNED]x[/link]",
    "{0.__class__}%n%s",
    r"$\frac$x$",
    "!!python/object/apply:os.system [touch PWNED]",
    "a: &a [*a]",
    "${jndi:ldap://127.0.0.1:9/x}",
)
UNPRINTABLE = ("\x1b]0;owned\x07", "\x1b[2J", "a\nb", "a\rb", "\x9b2J", "\u202egnp.exe", "a\u2028b", "a\x00b", "\ud800")
PLACES = ("model", "cluster", "accelerator", "vendor", "experiment")
Write = Callable[..., Path]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, where a command that is fooled would leave something."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def named(write_experiment: Write, names: dict[str, str]) -> Path:
    """The example as JSON, with other names."""
    data: Any = yaml.safe_load(write_experiment().read_text())
    data["name"] = names.get("experiment", "example")
    data["model"]["name"] = names.get("model", "model")
    data["cluster"]["name"] = names.get("cluster", "cluster")
    fast, slow = names.get("accelerator", "fast"), "slow"
    vendor = names.get("vendor", "nvidia")
    kinds = data["cluster"]["accelerators"]
    data["cluster"]["accelerators"] = {
        fast: kinds["fast"] | {"vendor": vendor},
        slow: kinds["slow"] | {"vendor": vendor},
    }
    data["cluster"]["nodes"][0]["accelerator"] = fast
    path = write_experiment().with_name("named.json")
    path.write_text(json.dumps(data))
    return path


def commands(experiment: Path, out: Path) -> Iterator[tuple[Any, ...]]:
    """Everything that can be done with an experiment and its plan."""
    plan = out / "plan.json"
    yield "search", experiment, "--out", out
    yield "count", experiment
    yield "costs", experiment, "--out", out / "costs.jsonl"
    yield "solve", out / "costs.jsonl", "--out", out / "results.jsonl"
    yield "compare", experiment, "--policy", "exact", "--policy", "metis", "--out", out / "compare"
    yield "verify", plan
    yield "simulate", plan, "--timeline"
    for framework in FRAMEWORK_NAMES:
        yield "export", plan, "--to", framework, "--out", out / framework


@pytest.mark.parametrize("first", range(0, len(NAMES), len(PLACES) - 1))
def test_whatever_things_are_called_a_command_writes_only_where_it_was_asked_to(
    cli: Any, write_experiment: Write, elsewhere: Path, tmp_path: Path, first: int
) -> None:
    names = {place: NAMES[(first + index) % len(NAMES)] for index, place in enumerate(PLACES)}
    experiment, out = named(write_experiment, names), tmp_path / "out"
    statuses = []
    for arguments in commands(experiment, out):
        with audited() as deeds:
            ran = cli(*arguments)
        assert deeds.outside(out) == [], arguments
        assert ran.status in (0, 2), ran.err
        assert all(line.isprintable() for line in (ran.out + ran.err).splitlines())
        statuses.append(ran.status)
    assert sum(status == 0 for status in statuses) >= 10
    assert list(elsewhere.iterdir()) == []
    assert not list(tmp_path.rglob("*PWNED*"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", UNPRINTABLE, ids=ascii)
def test_names_that_cannot_be_printed_are_refused_in_printable_lines(
    cli: Any, write_experiment: Write, place: str, name: str
) -> None:
    ran = cli("search", named(write_experiment, {place: name}))
    assert (ran.status, ran.out) == (2, "")
    assert ran.mistakes
    assert all(line.isprintable() for line in ran.mistakes)
    assert "cannot be printed" in ran.err


@pytest.mark.parametrize("name", NAMES)
def test_axes_labels_and_values_of_a_sweep_are_only_shown(
    cli: Any, write_experiment: Write, elsewhere: Path, tmp_path: Path, name: str
) -> None:
    write_experiment()
    points = [{"label": name, "set": {"cluster.name": name}}, {"label": "plain"}]
    axes = {name: {"points": points}, "values": {"field": "model.name", "values": [name]}}
    path, out = tmp_path / "sweep.json", tmp_path / "out"
    path.write_text(json.dumps({"name": name, "experiment": "example.yaml", "axes": axes}))
    with audited() as deeds:
        ran = cli("sweep", path, "--out", out)
    assert ran.status == 0, ran.err
    assert deeds.outside(out) == []
    assert name in ran.out
    assert (out / "plot.svg").exists()
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", UNPRINTABLE, ids=ascii)
def test_unprintable_labels_are_refused_and_unprintable_values_shown_without_their_codes(
    cli: Any, write_experiment: Write, tmp_path: Path, name: str
) -> None:
    write_experiment()
    path = tmp_path / "sweep.json"
    content = {"experiment": "example.yaml", "axes": {"x": {"points": [{"label": name}]}}}
    path.write_text(json.dumps(content))
    ran = cli("sweep", path, "--list")
    assert ran.status == 2
    assert all(line.isprintable() for line in ran.mistakes)
    content["axes"] = {"x": {"field": "cluster.name", "values": [name, "plain"]}}
    path.write_text(json.dumps(content))
    ran = cli("sweep", path, "--list")
    assert ran.status == 0
    assert "refused" in ran.out
    assert all(line.isprintable() for line in ran.out.splitlines())
