"""A small experiment for all rooms from the plan on (two nodes of two devices, eight layers, an analytic profile), an
option for runs that must leave nothing out, and which tests run in the same worker.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

EXAMPLE: dict[str, dict[str, Any]] = {
    "model": {
        "name": "eight-layers",
        "num_layers": 8,
        "hidden_size": 1024,
        "ffn_hidden_size": 4096,
        "num_attention_heads": 8,
        "vocab_size": 32_000,
    },
    "cluster": {
        "name": "two-types",
        "accelerators": {
            "fast": {"peak_tflops": 200.0, "memory_gb": 16.0},
            "slow": {"peak_tflops": 100.0, "memory_gb": 12.0},
        },
        "nodes": [
            {"accelerator": "fast", "count": 1, "devices": 2},
            {"accelerator": "slow", "count": 1, "devices": 2},
        ],
        "links": {
            "intra_node": {"bandwidth_gbps": 800.0, "latency_us": 5.0},
            "inter_node": {"bandwidth_gbps": 100.0, "latency_us": 10.0},
        },
    },
    "training": {"global_batch_size": 16, "seq_length": 1024, "micro_batch_sizes": [1, 2]},
    "search": {},
}


@pytest.fixture
def write_experiment(tmp_path: Path) -> Callable[..., Path]:
    """Writes the example as an experiment file; keyword arguments change single fields of its parts."""

    def write(name: str = "example.yaml", **changes: dict[str, Any]) -> Path:
        parts = {part: fields | changes.get(part, {}) for part, fields in EXAMPLE.items()}
        path = tmp_path / name
        path.write_text(yaml.safe_dump(parts), encoding="utf-8")
        return path

    return write


Report = TypeVar("Report", pytest.CollectReport, pytest.TestReport)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--need-packages",
        action="store_true",
        help="a test that would be skipped because a package can't be imported fails",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n` alone; another `--dist` is left as it is."""
    if config.getoption("dist") != "load":
        return None
    from tests.scheduling import SharedFirst

    return SharedFirst(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, pytest.CollectReport]:
    return _needing(collector.config, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    return _needing(item.config, (yield))


def _needing(config: pytest.Config, report: Report) -> Report:
    """The report; with `--need-packages` what `pytest.importorskip` skipped has failed."""
    reason = report.longrepr[2] if report.outcome == "skipped" and isinstance(report.longrepr, tuple) else ""
    if config.getoption("--need-packages") and "could not import" in reason:
        report.outcome = "failed"  # type: ignore[assignment]
        report.longrepr = f"{report.nodeid}: {reason.removeprefix('Skipped: ')} (--need-packages)"
    return report
