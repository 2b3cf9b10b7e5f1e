"""The options that say where to search, and the backend that they make."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from poseidon.search.backend import Backend

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--workers",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Search with this many processes on this machine (default 1: in this one).",
    ),
    click.option(
        "--ray",
        is_flag=False,
        flag_value="auto",
        metavar="[ADDRESS]",
        help="Search on a Ray cluster: HOST:PORT of its head, auto (the one of this machine), or local (starts one). "
        "Inside a Ray job its cluster is taken by itself.",
    ),
)


def backend_options(command: Command) -> Command:
    """Adds the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def backend_of(workers: int | None, ray: str | None) -> Iterator[Backend | None]:
    """The backend that was asked for; None: this process.

    Raises UsageError for options that exclude each other and InputError for a cluster that can't be reached.
    """
    if ray is None and workers is None and _is_ray_job():
        ray = "auto"
    if ray is not None and ray != "local" and workers is not None:
        raise click.UsageError("give either --workers or --ray, not both (a Ray cluster uses all of its CPUs)")
    backend = _on_ray(ray, workers) if ray is not None else _local(workers)
    try:
        yield backend
    finally:
        if backend is not None:
            backend.close()


def _local(workers: int | None) -> Backend | None:
    if workers is None or workers == 1:
        return None
    from poseidon.search.local_workers import LocalWorkers

    return LocalWorkers(workers)


def _on_ray(address: str, workers: int | None) -> Backend:
    from ray_jobs import ray_backend

    return ray_backend(address, workers)


def _is_ray_job() -> bool:
    """Whether this process is the entrypoint of a Ray job."""
    try:
        config = json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR", ""))
    except ValueError:
        return False
    return "RAY_ADDRESS" in os.environ and isinstance(config, dict) and "metadata" in config
