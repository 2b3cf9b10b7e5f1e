"""One backend for many searches, and what it leaves behind."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from poseidon.search.solve import solve
from ray_jobs.checkpoint import PREFIX, new_checkpoint
from tests.benchmarks.staleness import over_ray
from tests.processes import ray_processes, wait_until
from tests.ray_jobs.searches import essence
from tests.search.example import EXAMPLE

if TYPE_CHECKING:
    from ray_jobs.backend import RayBackend

ray_test = pytest.mark.ray


@ray_test
def test_an_improvement_reaches_a_running_shard(cluster: str) -> None:
    """How soon is measured by tests/benchmarks/staleness.py."""
    found_ms = over_ray(20)
    assert len(found_ms) == 20
    assert all(0 <= latency_ms < 60_000 for latency_ms in found_ms)


@ray_test
def test_many_searches_one_after_the_other_pile_nothing_up(backend: RayBackend, ray_folder: str) -> None:
    expected = essence(solve([EXAMPLE]))
    threads = []
    for _ in range(40):
        assert essence(solve([EXAMPLE], backend=backend)) == expected
        threads.append(threading.active_count())
        assert backend._context is None
        assert [*backend._tasks, *backend._tables, *backend._told, *backend._events] == []
    assert threads[-1] <= threads[0]
    assert len(ray_processes(ray_folder, "ray::IncumbentActor")) == 1


@ray_test
def test_a_closed_backend_takes_its_actor_and_its_file_along_but_not_the_cluster(cluster: str, ray_folder: str) -> None:
    import ray

    from ray_jobs import ray_backend

    output = sys.stdout
    backend = ray_backend("auto")  # this process is connected: that connection is taken
    assert backend.num_workers == 2
    solve([EXAMPLE], backend=backend)
    kept = Path(tempfile.gettempdir())
    [folder] = kept.glob(f"{PREFIX}{os.getpid()}-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path for path in folder.iterdir() if path.suffix == ""]
    backend.close()
    assert sys.stdout is output
    assert ray.is_initialized()
    assert not list(kept.glob(f"{PREFIX}{os.getpid()}-*"))
    assert wait_until(lambda: not ray_processes(ray_folder, "ray::IncumbentActor"))


def test_folders_of_drivers_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, present = tmp_path / f"{PREFIX}999999999-ab", tmp_path / f"{PREFIX}{os.getppid()}-ab"
    for folder in (left, present):
        folder.mkdir()
        (folder / "incumbent").touch()
    new = new_checkpoint()
    assert {*tmp_path.iterdir()} == {present, new.parent}
