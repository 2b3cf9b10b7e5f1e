"""Searches on a Ray cluster: how to reach it, the actor that holds the time to beat, and the tasks (README.md here).

Nothing in here searches: the shards are those of `poseidon.search`. Ray is loaded when a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poseidon.search.backend import Backend
    from poseidon.sweep.executor import Executor

__all__ = ["ray_backend", "ray_runs"]


def ray_backend(address: str, num_workers: int | None = None) -> Backend:
    """A backend on the Ray cluster at `address` (HOST:PORT of its head), on that of this machine or job (`auto`), or on
    one that is started for it (`local`, with `num_workers` CPUs).

    Raises InputError where there is no such cluster or Ray is not installed.
    """
    from ray_jobs.connect import connect

    is_new = connect(address, num_workers)
    from ray_jobs.backend import RayBackend

    return RayBackend(leaves_cluster=is_new)


def ray_runs(address: str, num_workers: int | None = None) -> Executor:
    """What does the runs of a sweep on a Ray cluster; see `ray_backend`."""
    from ray_jobs.connect import connect

    connect(address, num_workers)
    from ray_jobs.sweep import RayTasks

    return RayTasks()
