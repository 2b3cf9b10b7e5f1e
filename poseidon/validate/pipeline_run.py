"""Starts the processes of a real pipeline on this machine and collects what they measured."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Link = Literal["plain", "late", "held"]
"""``plain``: as the machine is; the others as `processes.slow_link` says."""


@dataclass(frozen=True)
class PipelineSpec:
    """What to run: `forward_ms[stage][chunk]` and `backward_ms` are slept; `csv` is an order for PyTorch's runtime."""

    torch_name: str
    num_micro_batches: int
    forward_ms: tuple[tuple[float, ...], ...]
    backward_ms: tuple[tuple[float, ...], ...]
    link: Link = "plain"
    delay_ms: float = 0.0
    csv: str = ""
    iterations: int = 8


@dataclass(frozen=True)
class MeasuredPipeline:
    """What the processes measured; `forward_ms` and `backward_ms` are medians, [stage][chunk].

    `transfer_ms` is from the sending of a message to its arrival, delay included.
    """

    fastest_ms: float
    median_ms: float
    forward_ms: tuple[tuple[float, ...], ...]
    backward_ms: tuple[tuple[float, ...], ...]
    transfer_ms: float


def run_pipeline(spec: PipelineSpec, timeout_s: float = 120.0) -> MeasuredPipeline:
    """Runs the pipeline, a process for each stage; RuntimeError with what a process wrote if one fails.

    The first half of the iterations is the profile, the second half is what counts as measured.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "spec.json"
        content = asdict(spec)
        if spec.csv:
            (Path(directory) / "order.csv").write_text(spec.csv, encoding="utf-8")
            content["csv"] = str(Path(directory) / "order.csv")
        path.write_text(json.dumps(content), encoding="utf-8")
        _run_processes(path, len(spec.forward_ms), timeout_s)
        results = [
            json.loads(path.with_suffix(f".{rank}.json").read_text(encoding="utf-8"))
            for rank in range(len(spec.forward_ms))
        ]
    spans = [
        1e3 * (max(end for _, end in iteration) - min(start for start, _ in iteration))
        for iteration in zip(*(result["iterations"] for result in results), strict=True)
    ]
    measured = spans[spec.iterations // 2 :]
    num_profiled = spec.num_micro_batches * (spec.iterations // 2)

    def profiled(kind: str) -> tuple[tuple[float, ...], ...]:
        return tuple(
            tuple(statistics.median(chunk[kind][:num_profiled]) for chunk in result["times_ms"]) for result in results
        )

    transfer_ms = max(result["transfer_ms"] for result in results)
    return MeasuredPipeline(
        min(measured), statistics.median(measured), profiled("forward"), profiled("backward"), transfer_ms
    )


def _run_processes(path: Path, num_processes: int, timeout_s: float) -> None:
    command = [sys.executable, "-m", "poseidon.validate.processes.stage_process", str(path)]
    processes = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(num_processes)
    ]
    try:
        outputs = [process.communicate(timeout=timeout_s)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for rank, (process, output) in enumerate(zip(processes, outputs, strict=True)):
        if process.returncode != 0:
            raise RuntimeError(f"process {rank} of the pipeline failed:\n{output}")
