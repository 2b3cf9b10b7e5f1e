"""The page as text: what it holds, and that nothing of a plan becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from poseidon.plan.plan import Plan
from poseidon.report import Simulated, break_down, page_html, simulated_plan, simulated_stages
from poseidon.report.timeline_data import timeline_to_json
from poseidon.schedule import get_schedule
from poseidon.simulate import StagesFile, stage_times

from .hostile import HARMLESS, HOSTILE, hostile_plan


class Reader(HTMLParser):
    """Collects elements, attributes and the contents of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in self.contents else ""
        if self._inside:
            self.contents[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.contents[self._inside][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page_of(plan: Plan) -> str:
    simulated = simulated_plan(plan, "plan.json")
    return page_html(simulated, break_down(simulated), None)


def test_the_page_names_no_address(quickstart: Plan) -> None:
    page = page_of(quickstart)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|fetch\(|XMLHttpRequest|WebSocket", page)
    reader = Reader(page)
    links = [
        value for _, attributes in reader.elements for name, value in attributes.items() if name in ("src", "href")
    ]
    assert {link for link in links if not str(link).startswith("#")} == {"data:,"}


def test_the_policy_allows_the_own_script_and_style_sheet_by_hash_only(quickstart: Plan) -> None:
    reader = Reader(page_of(quickstart))
    [policy] = [meta["content"] for meta in reader.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in str(policy).split("; "))
    assert rules["default-src"] == "'none'"
    data, script = reader.contents["script"]
    for name, text in (("script-src", script), ("style-src", reader.contents["style"][0])):
        assert rules[name] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert json.loads(data)["iteration_ms"] == quickstart.pipeline.iteration_time_ms
    assert not any(name.startswith("on") or name == "style" for _, found in reader.elements for name in found)


def test_names_of_a_hostile_plan_stay_text(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    page = page_of(hostile_plan(plan))
    hostile, usual = Reader(page), Reader(page_of(hostile_plan(plan, HARMLESS)))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in usual.elements]
    assert len(hostile.contents["script"]) == 2
    assert not any(name in page for name in HOSTILE)
    stages = json.loads(hostile.contents["script"][0])["stages"]
    assert all(any(name in stage["short"] for name in HOSTILE) for stage in stages)


def test_the_page_shows_the_numbers_of_the_plan(quickstart: Plan) -> None:
    page = page_of(quickstart).replace("\u00a0", " ")
    for text in ("15,749.8", "33,289", "50.4 %", "13.1 %", "proven optimal", "21.9 / 48.0 GB", "A6000", "Llama-2-13B"):
        assert text in page
    for alternative in quickstart.alternatives:
        assert f"{alternative.iteration_time_ms:,.1f}" in page


def ends_of(data: dict[str, Any]) -> list[tuple[int, str, int, int, float, float]]:
    """The operations as the page's script works them out."""
    rows, number = [], 0
    for stage, entry in enumerate(data["stages"]):
        for _ in range(entry["count"]):
            kind, chunk = data["kinds"][number], data["chunk"][number] if "chunk" in data else 0
            start = data["start"][number]
            rows.append((stage, kind, data["microbatch"][number], chunk, start, start + entry["ms"][kind][chunk]))
            number += 1
    assert number == len(data["kinds"]) == len(data["start"])
    return rows


def test_the_data_give_back_every_operation_and_message(random_iteration: Simulated) -> None:
    data = timeline_to_json(random_iteration)
    assert data is not None
    found = ends_of(data)
    expected = [
        (item.stage, item.action.kind, item.action.microbatch, item.action.chunk, item.start_ms, item.end_ms)
        for item in random_iteration.timeline.operations()
    ]
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    assert [x for row in found for x in row[4:]] == pytest.approx([x for row in expected for x in row[4:]], abs=2e-6)
    messages = random_iteration.messages
    for sender, receiver, sent, arrived in zip(
        messages.sender, messages.receiver, messages.sent_ms, messages.arrived_ms, strict=True
    ):
        assert data["sender"][receiver] == sender
        left = data["sent"][receiver] if "sent" in data else found[sender][5]
        assert left == pytest.approx(sent, abs=2e-6)
        assert left + data["wire_ms"][data["wire"][receiver]] == pytest.approx(arrived, abs=4e-6)
    assert sum(number >= 0 for number in data["sender"]) == len(messages.sender)


def test_the_drawn_path_is_the_critical_path(random_iteration: Simulated) -> None:
    data = timeline_to_json(random_iteration)
    assert data is not None
    path = random_iteration.timeline.critical_path
    assert [step[2:] for step in data["path"]] == [
        pytest.approx([step.start_ms, step.end_ms], abs=1e-6) for step in path
    ]
    for (operation, stage, *_), step in zip(data["path"], path, strict=True):
        if operation < 0:
            assert stage == step.stage
        else:
            assert ends_of(data)[operation][0] == step.stage


def test_too_many_operations_are_not_embedded(quickstart: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poseidon.report.timeline_data.MOST_DRAWN", 100)
    page = page_of(quickstart)
    assert "896 operations are more than this page draws" in page
    assert Reader(page).all("canvas") == []
    assert "timeline-data" not in page


def test_a_plan_with_another_time_than_its_stages_is_said_to_be_wrong(quickstart: Plan) -> None:
    slower = replace(quickstart.pipeline, iteration_time_ms=20_000.0)
    page = page_of(replace(quickstart, pipeline=slower))
    assert "The plan says 20,000.0 ms an iteration, its stages take 15,749.8 ms" in page
    assert "The plan says" not in page_of(quickstart)


def test_a_page_of_stages_that_take_no_time() -> None:
    times = stage_times([0.0, 0.0], [0.0, 0.0])
    stages = StagesFile("1f1b", get_schedule("1f1b").order(2, 2), times)
    simulated = simulated_stages(stages, "nothing.json", "nothing")
    assert "0.000" in page_html(simulated, break_down(simulated), None)
