"""The page in a real browser: drawn, quiet, nothing loaded, no overflow, and no hostile name comes alive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from poseidon.plan.plan import Plan
from poseidon.report import Simulated, break_down, find_sensitivity, page_html, simulated_plan, simulated_stages
from poseidon.simulate import TimedOperation, read_stages
from poseidon.simulate.timeline import Transfers

from .chromium import PROGRAM, Chromium
from .conftest import random_simulated
from .hostile import hostile_plan

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed: apt-get install chromium")

ROOT = Path(__file__).parents[2]
NAMES = ("quickstart", "interleaved", "long_pipeline")
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("chromium") / "profile")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def simulated(quickstart: Plan, interleaved: Plan, long_pipeline: Plan) -> dict[str, Simulated]:
    plans = {"quickstart": quickstart, "interleaved": interleaved, "long_pipeline": long_pipeline}
    return {name: simulated_plan(plan, name) for name, plan in plans.items()}


@pytest.fixture(scope="module")
def pages(simulated: dict[str, Simulated], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("pages")
    for name, item in simulated.items():
        (directory / f"{name}.html").write_text(page_html(item, break_down(item), None), encoding="utf-8")
    return {name: directory / f"{name}.html" for name in simulated}


def drawn(chromium: Chromium) -> dict[str, Any]:
    """What the canvas says of its last drawing."""
    found: dict[str, Any] = json.loads(
        chromium.run("JSON.stringify(document.getElementById('timeline-canvas').dataset)")
    )
    return {name: value if name == "mode" else float(value) for name, value in found.items()}


def box_of(chromium: Chromium) -> tuple[float, float, float, float]:
    """Left, top, width and height of the canvas in the window."""
    rectangle = "document.getElementById('timeline-canvas').getBoundingClientRect()"
    left, top, width, height = chromium.run(f"(b => [b.left, b.top, b.width, b.height])({rectangle})")
    return left, top, width, height


def colours(chromium: Chromium) -> int:
    """How many different colours the canvas has."""
    return int(
        chromium.run(
            """(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
            for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
            return seen.size; })(document.getElementById('timeline-canvas'))"""
        )
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_drawn_fits_and_loads_nothing(
    chromium: Chromium, pages: dict[str, Path], simulated: dict[str, Simulated], name: str, width: int, scheme: str
) -> None:
    chromium.size(width)
    chromium.scheme(scheme)
    chromium.open(pages[name])
    num_operations = simulated[name].timeline.order.num_operations
    state = drawn(chromium)
    assert (state["operations"], state["drawn"]) == (num_operations, num_operations)
    assert (state["from"], state["to"]) == (0, simulated[name].iteration_time_ms)
    assert colours(chromium) > 6
    assert chromium.run("document.documentElement.scrollWidth") <= width
    assert chromium.complaints == []
    assert chromium.requests == [pages[name].as_uri()]


@pytest.mark.parametrize("width", WIDTHS)
def test_what_changes_would_give_fits_too(
    chromium: Chromium, make_plan: Callable[..., Plan], tmp_path: Path, width: int
) -> None:
    plan = make_plan(search={"top": 3})
    simulated, sensitivity = simulated_plan(plan, "plan.json"), find_sensitivity(plan, 20, lambda *_: None)
    page = tmp_path / "page.html"
    page.write_text(page_html(simulated, break_down(simulated), sensitivity), encoding="utf-8")
    chromium.size(width)
    chromium.open(page)
    chromium.run("document.querySelectorAll('details').forEach(element => { element.open = true; })")
    rows = chromium.run("[...document.querySelectorAll('#sensitivity tbody tr')].map(row => row.innerText)")
    assert [row.split("\t")[0] for row in rows] == [answer.change.label for answer in sensitivity.answers]
    assert chromium.run("document.querySelectorAll('#sensitivity .bars svg').length") == len(sensitivity.answers)
    assert chromium.run("document.querySelectorAll('#alternatives tbody tr').length") == 3
    assert chromium.run("document.documentElement.scrollWidth") <= width
    assert chromium.complaints == []


def test_the_long_pipeline_has_36_stages_and_as_many_operations_as_asked_for(simulated: dict[str, Simulated]) -> None:
    order = simulated["long_pipeline"].timeline.order
    assert (order.num_stages, order.num_micro_batches, order.num_operations) == (36, 512, 36_864)
    assert simulated["interleaved"].timeline.order.num_chunks == 2


@pytest.mark.parametrize("name", NAMES)
def test_zooming_in_shows_boxes_and_out_again_everything(
    chromium: Chromium, pages: dict[str, Path], simulated: dict[str, Simulated], name: str
) -> None:
    chromium.size(1280)
    chromium.open(pages[name])
    whole = simulated[name].iteration_time_ms
    left, top, width, _ = box_of(chromium)
    x = left + 0.6 * width
    for _ in range(40):
        if drawn(chromium)["to"] - drawn(chromium)["from"] < whole / 100:
            break
        chromium.mouse("mouseWheel", x, top + 60, deltaX=0, deltaY=-400, modifiers=2)
    near = drawn(chromium)
    assert near["mode"] == "boxes"
    assert near["to"] - near["from"] < whole / 100
    # The time under the pointer stayed where it was.
    part = (x - left - near["left"]) / near["width"]
    assert near["from"] + part * (near["to"] - near["from"]) == pytest.approx(part * whole, abs=whole / 1000)
    timeline = simulated[name].timeline
    inside = (timeline.start_ms < near["to"]) & (timeline.end_ms > near["from"])
    assert near["drawn"] == pytest.approx(int(inside.sum()), abs=2)
    chromium.run("document.getElementById('timeline-all').click()")
    chromium.settle()
    assert drawn(chromium)["drawn"] == timeline.order.num_operations


def test_the_wheel_alone_scrolls_the_page(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.size(1280)
    chromium.open(pages["quickstart"])
    left, top, _, _ = box_of(chromium)
    before = drawn(chromium)
    chromium.mouse("mouseWheel", left + 300, top + 60, deltaX=0, deltaY=200)
    assert drawn(chromium) == before


def test_dragging_moves_and_keys_do_everything(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.size(1280)
    chromium.open(pages["quickstart"])
    chromium.run("document.getElementById('timeline-canvas').focus()")
    whole = drawn(chromium)
    for _ in range(3):
        chromium.key("+")
    near = drawn(chromium)
    assert near["to"] - near["from"] == pytest.approx((whole["to"] - whole["from"]) / 8)
    chromium.key("ArrowRight")
    assert drawn(chromium)["from"] > near["from"]
    left, top, _, _ = box_of(chromium)
    middle = drawn(chromium)
    chromium.mouse("mousePressed", left + 600, top + 60, button="left", clickCount=1)
    chromium.mouse("mouseMoved", left + 500, top + 60, button="left", buttons=1)
    chromium.mouse("mouseReleased", left + 500, top + 60, button="left", clickCount=1)
    assert drawn(chromium)["from"] > middle["from"]
    chromium.key("0")
    assert drawn(chromium) == whole
    chromium.key("ArrowDown")
    chromium.key("n")
    told = chromium.run("document.getElementById('timeline-told').textContent")
    assert told.startswith("F0: forward of micro-batch 0. ")
    assert "Stage 1: RTX-4090" in told
    chromium.key("n")
    assert chromium.run("document.getElementById('timeline-told').textContent").startswith("F1: forward")


def place_of(chromium: Chromium, time_ms: float, stage: int) -> tuple[float, float]:
    """Where on the canvas a time of a stage is drawn."""
    state = drawn(chromium)
    part = (time_ms - state["from"]) / (state["to"] - state["from"])
    return state["left"] + part * state["width"], state["top"] + (stage + 0.4) * state["row"]


def bring_into_view(chromium: Chromium, item: TimedOperation) -> None:
    """Zooms in at the operation until it is wide."""
    chromium.run("document.getElementById('timeline-all').click()")
    chromium.settle()
    left, top, _, _ = box_of(chromium)
    while drawn(chromium)["to"] - drawn(chromium)["from"] > 30 * (item.end_ms - item.start_ms):
        x, y = place_of(chromium, 0.5 * (item.start_ms + item.end_ms), item.stage)
        chromium.mouse("mouseWheel", left + x, top + y, deltaX=0, deltaY=-800, modifiers=2)


@pytest.mark.parametrize("name", NAMES)
def test_hovering_tells_the_operation_and_it_has_the_colour_of_its_kind(
    chromium: Chromium, pages: dict[str, Path], simulated: dict[str, Simulated], name: str
) -> None:
    chromium.size(1280, 1400)
    chromium.scheme("light")
    chromium.open(pages[name])
    timeline, stage = simulated[name].timeline, 2
    operations = [item for item in timeline.operations() if item.stage == stage and item.action.chunk == 0]
    for overlay in ("timeline-path", "timeline-messages"):  # they are drawn over the boxes
        chromium.run(f"document.getElementById('{overlay}').click()")
    left, top, _, _ = box_of(chromium)
    for item in (operations[0], operations[len(operations) // 2], operations[-1]):
        bring_into_view(chromium, item)
        state = drawn(chromium)
        seen = (max(item.start_ms, state["from"]), min(item.end_ms, state["to"]))
        x, y = place_of(chromium, seen[0] + 0.07 * (seen[1] - seen[0]), stage)  # left of the number
        pixel = chromium.run(
            f"[...document.getElementById('timeline-canvas').getContext('2d').getImageData({x}, {y}, 1, 1).data]"
        )
        colour = chromium.run(
            f"getComputedStyle(document.documentElement).getPropertyValue('--kind-{item.action.kind}')"
        )
        assert "#" + bytes(pixel[:3]).hex() == colour.strip()
        chromium.mouse("mouseMoved", left + x, top + y)
        lines = chromium.run("[...document.getElementById('timeline-tip').children].map(e => e.textContent)")
        assert lines[0].startswith(f"{item.action.operation(timeline.order.num_chunks)}: ")
        assert lines[1].startswith(f"{item.start_ms:,.3f} to {item.end_ms:,.3f} ms")
        assert lines[2] == simulated[name].words[stage].full


def test_hovering_over_a_gap_tells_what_the_stage_waits_for(
    chromium: Chromium, pages: dict[str, Path], simulated: dict[str, Simulated]
) -> None:
    chromium.size(1280, 1400)
    chromium.open(pages["quickstart"])
    left, top, _, _ = box_of(chromium)
    last = max(item.end_ms for item in simulated["quickstart"].timeline.operations() if item.action.kind == "F")
    x, y = place_of(chromium, 0.05 * last, 0)
    chromium.mouse("mouseMoved", left + x, top + y)
    [first, *_] = chromium.run("[...document.getElementById('timeline-tip').children].map(e => e.textContent)")
    assert first == "waits for B0, from stage 1"


def test_the_critical_path_can_be_hidden(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.size(1280)
    chromium.scheme("light")
    chromium.open(pages["quickstart"])
    count = """(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;
        for (let i = 0; i < d.length; i += 4) n += d[i] === 194 && d[i + 1] === 24 && d[i + 2] === 91;
        return n; })(document.getElementById('timeline-canvas'))"""
    assert chromium.run(count) > 1000
    chromium.run("document.getElementById('timeline-path').click()")
    chromium.settle()
    assert chromium.run(count) == 0


def test_nothing_of_a_hostile_plan_comes_alive(
    chromium: Chromium, make_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    simulated = simulated_plan(hostile_plan(make_plan()), "hostile.json")
    page = tmp_path / "hostile.html"
    page.write_text(page_html(simulated, break_down(simulated), "<script>window.ran=1</script>"), encoding="utf-8")
    chromium.size(390)
    chromium.open(page)
    left, top, width, _ = box_of(chromium)
    chromium.mouse("mouseMoved", left + 0.5 * width, top + 40)
    assert chromium.run("document.getElementById('timeline-tip').hidden") is False
    assert chromium.run("'ran' in window") is False
    assert chromium.run("document.querySelectorAll('img, script:not([type])').length") == 1
    assert chromium.run("document.documentElement.scrollWidth") <= 390
    assert chromium.complaints == []
    assert chromium.requests == [page.as_uri()]


def test_the_policy_stops_what_escaping_would_let_through(
    chromium: Chromium, pages: dict[str, Path], tmp_path: Path
) -> None:
    """With markup put into the page by force: it neither runs nor asks for anything."""
    page = tmp_path / "forced.html"
    sheet, image = "href='http://127.0.0.1:9/s'", "src='http://127.0.0.1:9/x' onerror='window.ran=2'"
    smuggled = f"<script>window.ran=1</script><link rel=stylesheet {sheet}><img {image}><i style='top:0'>"
    text = pages["quickstart"].read_text(encoding="utf-8")
    page.write_text(text.replace("<main>", f"<main>{smuggled}", 1), encoding="utf-8")
    chromium.open(page)
    assert chromium.run("'ran' in window") is False
    blocked = [event["params"] for event in chromium.events if event["method"] == "Network.loadingFailed"]
    assert {entry.get("blockedReason") for entry in blocked} == {"csp"}
    assert any("script-src" in line for line in chromium.complaints)


def test_a_stages_file_is_drawn_too(chromium: Chromium, tmp_path: Path) -> None:
    file = ROOT / "configs" / "stages" / "seq1f1b.json"
    simulated = simulated_stages(read_stages(file), str(file), file.name)
    page = tmp_path / "stages.html"
    page.write_text(page_html(simulated, break_down(simulated), None), encoding="utf-8")
    chromium.size(390)
    chromium.open(page)
    assert drawn(chromium)["drawn"] == simulated.timeline.order.num_operations
    assert chromium.complaints == []
    assert chromium.run("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("transfers", ["overlapped", "blocking"])
@pytest.mark.parametrize("seed", range(4))
def test_random_orders_with_split_backwards_and_chunks_in_a_v_are_drawn(
    chromium: Chromium, seed: int, transfers: Transfers, tmp_path: Path
) -> None:
    simulated = random_simulated(seed, transfers)
    page = tmp_path / "random.html"
    page.write_text(page_html(simulated, break_down(simulated), None), encoding="utf-8")
    chromium.size(1280)
    chromium.open(page)
    assert drawn(chromium)["drawn"] == simulated.timeline.order.num_operations
    assert chromium.complaints == []


def test_printing_is_light(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.size(1280)
    chromium.scheme("dark")
    chromium.open(pages["quickstart"])
    corner = (
        "[...document.getElementById('timeline-canvas').getContext('2d').getImageData(1, 1, 1, 1).data].slice(0, 3)"
    )
    assert max(chromium.run(corner)) < 60
    chromium.run("window.dispatchEvent(new Event('beforeprint'))")
    assert chromium.run(corner) == [255, 255, 255]
    chromium.run("window.dispatchEvent(new Event('afterprint'))")
    assert max(chromium.run(corner)) < 60
    assert chromium.call("Page.printToPDF")["data"]
