"""How long after one worker finds a better plan another worker's running kernel knows it.

    python -m tests.benchmarks.staleness local|ray [IMPROVEMENTS]

Two workers, both cores busy. One publishes a better time some 20 times a second, with the clock; the other looks at its
cell, the one that kernels read at every search node, without pause. While it waits each also keeps a kernel running in
a thread (the enumeration of a large outer choice, which holds no lock). Prints median, 90 % and 99 % in milliseconds.
"""

from __future__ import annotations

import os
import pickle
import shutil
import statistics
import sys
import tempfile
import threading
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.options import SearchOptions
from poseidon.search.shard import Context, Found
from poseidon.search.space import space_of
from tests.processes import ray_environment
from tests.search.example import BEST, EXAMPLE, HARD

PAUSE_S = 0.05
FIRST_MS = 1e6
LONGEST_S = 120.0
LOOK_S = 0.0002
"""Pause between two looks at the cell, so that the thread with the kernel has the core."""


def busy() -> None:
    """A kernel that runs until the process ends, in a thread of its own."""

    def enumerate_on() -> None:
        search = space_of(HARD).search(False, False, float("inf"))
        while not search.done:
            search.run(1_000_000)

    threading.Thread(target=enumerate_on, daemon=True).start()


def watch(cell: IncumbentCell, improvements: int) -> dict[float, float]:
    """When each time to beat was first seen in a cell."""
    seen: dict[float, float] = {}
    until = time.monotonic() + LONGEST_S
    last_ms = FIRST_MS - improvements + 1
    while last_ms not in seen and time.monotonic() < until:
        seen.setdefault(cell.read()[0], time.monotonic())
        time.sleep(LOOK_S)
    return seen


def latencies_ms(published: dict[float, float], seen: dict[float, float]) -> list[float]:
    """Of every improvement, until the cell held it or a better one."""
    found = []
    for cutoff_ms, at in published.items():
        as_good = [when for known_ms, when in seen.items() if known_ms <= cutoff_ms]
        found.append(1000 * (min(as_good, default=float("inf")) - at))
    return found


def over_local(improvements: int) -> list[float]:
    """Between two processes with the cell in shared memory, as in `--workers 2`."""
    spawn = get_context("spawn")
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        file.write(bytes(SIZE))
        file.flush()
        answers: Any = spawn.Queue()
        both = spawn.Barrier(2)
        jobs = [spawn.Process(target=job, args=(file.name, both, answers, improvements)) for job in (_tell, _see)]
        for process in jobs:
            process.start()
        found = dict(answers.get(timeout=2 * LONGEST_S) for _ in jobs)
        for process in jobs:
            process.join()
    return latencies_ms(found["published"], found["seen"])


def _cell(path: str) -> IncumbentCell:
    import mmap

    with Path(path).open("r+b") as file:
        return IncumbentCell(memoryview(mmap.mmap(file.fileno(), 0)))


def _tell(path: str, both: Any, answers: Any, improvements: int) -> None:
    cell = _cell(path)
    cell.reset()
    busy()
    both.wait()
    published = {}
    for number in range(improvements):
        time.sleep(PAUSE_S)
        published[FIRST_MS - number] = time.monotonic()
        cell.publish(FIRST_MS - number, 0)
    answers.put(("published", published))


def _see(path: str, both: Any, answers: Any, improvements: int) -> None:
    busy()
    both.wait()
    answers.put(("seen", watch(_cell(path), improvements)))


def over_ray(improvements: int) -> list[float]:
    """Between two tasks with the actor and the clients of `ray_jobs`; this process must be connected."""
    import ray

    from ray_jobs.backend import RayBackend
    from ray_jobs.client import client_of

    backend = RayBackend(leaves_cluster=False)
    context = Context((EXAMPLE,), SearchOptions())
    backend.begin(context, None)  # type: ignore[arg-type]
    packed = np.frombuffer(pickle.dumps(context), dtype=np.uint8)
    ray.get(backend._actor.process_id.remote())  # it takes seconds to start, and is not what is measured here
    meeting = tempfile.mkdtemp()

    def meet(name: str) -> None:
        """Waits until both tasks run: a worker process takes seconds to start."""
        Path(meeting, name).touch()
        while len(os.listdir(meeting)) < 2:
            time.sleep(0.01)

    def tell(actor: list[Any]) -> dict[float, float]:
        client = client_of(backend_search, packed, actor[0])
        meet("tell")
        busy()
        time.sleep(0.5)
        published = {}
        for number in range(improvements):
            time.sleep(PAUSE_S)
            published[FIRST_MS - number] = time.monotonic()
            client.found(Found(0, BEST, FIRST_MS - number))
        return published

    def see(actor: list[Any]) -> dict[float, float]:
        client = client_of(backend_search, packed, actor[0])
        meet("see")
        busy()
        return watch(client.cell, improvements)

    backend_search = backend._search
    try:
        jobs = [ray.remote(num_cpus=1)(job).remote([backend._actor]) for job in (see, tell)]
        seen, published = ray.get(jobs, timeout=3 * LONGEST_S)
    finally:
        backend.close()
        shutil.rmtree(meeting)
    return latencies_ms(published, seen)


def main() -> None:
    """As the command line says."""
    where, improvements = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400
    if where == "local":
        found = over_local(improvements)
    else:
        with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
            os.environ.update(ray_environment(folder))
            import ray

            from ray_jobs.connect import connect

            connect("local", 2)
            found = over_ray(improvements)
            ray.shutdown()
    cuts = statistics.quantiles(found, n=100)
    print(
        f"{where}, {len(found)} improvements: median {cuts[49]:.2f} ms, 90 % {cuts[89]:.2f} ms, 99 % {cuts[98]:.2f} ms"
    )


if __name__ == "__main__":
    main()
