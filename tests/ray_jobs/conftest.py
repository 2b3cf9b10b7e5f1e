"""One Ray cluster of two CPUs for all tests that can share it; nothing of it leaves this machine or stays on it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.processes import kill_all, ray_environment, ray_processes, remove_folder, wait_until

if TYPE_CHECKING:
    from ray_jobs.backend import RayBackend

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def ray_folder() -> Iterator[str]:
    """Where the files of the shared cluster are."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    yield folder
    is_gone = wait_until(lambda: not ray_processes(folder))
    kill_all(lambda: ray_processes(folder))
    remove_folder(folder)
    assert is_gone, "Ray processes were left behind"


@pytest.fixture(scope="session")
def environment(ray_folder: str) -> dict[str, str]:
    """For commands that start or use a Ray cluster."""
    return ray_environment(ray_folder)


@pytest.fixture(scope="session")
def cluster(environment: dict[str, str]) -> Iterator[str]:
    """This process is connected to a cluster of its own; the address of its head."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        del os.environ[name]
    os.environ.update(environment)
    import ray

    from ray_jobs.connect import connect

    try:
        _start(lambda: connect("local", 2))
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()
        os.environ.clear()
        os.environ.update(before)


def _start(connect: Callable[[], bool]) -> None:
    """Ray waits 30 s for its own processes, whatever else the machine has to do: then it is started again."""
    import ray

    for left in (2, 1, 0):
        try:
            assert connect()
        except Exception as error:
            if "timed out during startup" not in str(error) or not left:
                raise
            ray.shutdown()
        else:
            return


@pytest.fixture
def backend(cluster: str) -> Iterator[RayBackend]:
    from ray_jobs import ray_backend

    backend = ray_backend("local")
    yield backend
    backend.close()


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``poseidon search`` in a process of its own."""

    def run(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "poseidon.cli", "search", *map(str, arguments)]
        return subprocess.run(
            line, env=environment | changes, cwd=tmp_path, capture_output=True, text=True, timeout=180
        )

    return run
