"""A real head with its dashboard and job server, on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ray_jobs.test_connect import free_port

RAY = [str(Path(sys.executable).with_name("ray"))]
LONGEST_S = 180.0


@dataclass(frozen=True)
class Head:
    """Where it is."""

    address: str
    jobs: Any
    """A `JobSubmissionClient`."""


@contextmanager
def head(environment: dict[str, str], cwd: Path) -> Iterator[Head]:
    """Starts a head with two CPUs. It is not ended here: `ray stop` would end every Ray of this machine."""
    port, dashboard = free_port(), free_port()
    ports = {
        "port": port,
        "dashboard-port": dashboard,
        "dashboard-agent-listen-port": free_port(),
        "ray-client-server-port": free_port(),
        "min-worker-port": 0,
        "max-worker-port": 0,
        "num-cpus": 2,
        "object-store-memory": 300 * 2**20,
    }
    options = [f"--{name}={value}" for name, value in ports.items()]
    line = [*RAY, "start", "--head", "--include-dashboard=true", *options]
    subprocess.run(line, env=environment, cwd=cwd, check=True, capture_output=True, timeout=LONGEST_S)
    from ray.job_submission import JobSubmissionClient

    yield Head(f"127.0.0.1:{port}", JobSubmissionClient(f"http://127.0.0.1:{dashboard}"))


def wait_for_job(head: Head, job: str) -> str:
    """Its last status."""
    until = time.monotonic() + LONGEST_S
    while not head.jobs.get_job_status(job).is_terminal():
        assert time.monotonic() < until, head.jobs.get_job_logs(job)
        time.sleep(0.2)
    status: str = head.jobs.get_job_status(job).value
    return status
