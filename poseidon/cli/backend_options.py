"""The options that say where to search, and the backend that they make."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        help="Use this many processes on this machine (default 1: this one).",
    ),
    click.option(
        "--ray",
        is_flag=False,
        flag_value="auto",
        metavar="[ADDRESS]",
        help="Use a Ray cluster: HOST:PORT of its head, auto (the one of this machine), or local (starts one). "
        "Inside a Ray job its cluster is taken by itself.",
    ),
)


def backend_options(command: Command) -> Command:
    """Adds the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Place:
    """Where to search: on the Ray cluster at `ray` (None: on none), with so many `workers` (None: not said)."""

    ray: str | None
    workers: int | None


def place_of(workers: int | None, ray: str | None) -> Place:
    """What the options ask for; inside a Ray job that is its cluster, unless they say otherwise.

    Raises UsageError for options that exclude each other.
    """
    if ray is None and workers is None and _is_ray_job():
        ray = "auto"
    if ray is not None and ray != "local" and workers is not None:
        raise click.UsageError("give either --workers or --ray, not both (a Ray cluster uses all of its CPUs)")
    return Place(ray, workers)


@contextmanager
def backend_of(workers: int | None, ray: str | None) -> Iterator[Backend | None]:
    """The backend that was asked for; None: this process.

    Raises UsageError for options that exclude each other and InputError for a cluster that can't be reached.
    """
    backend = _backend(place_of(workers, ray))
    try:
        yield backend
    finally:
        if backend is not None:
            backend.close()


def _backend(place: Place) -> Backend | None:
    if place.ray is not None:
        from ray_jobs import ray_backend

        return ray_backend(place.ray, place.workers)
    if place.workers is None or place.workers == 1:
        return None
    from poseidon.search.local_workers import LocalWorkers

    return LocalWorkers(place.workers)


def _is_ray_job() -> bool:
    """Whether this process is the entrypoint of a Ray job."""
    try:
        config = json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR", ""))
    except ValueError:
        return False
    return "RAY_ADDRESS" in os.environ and isinstance(config, dict) and "metadata" in config
