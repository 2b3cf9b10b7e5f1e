"""Searches whose workers, actor, nodes and driver are killed at random: every one must end with the reference plan.

    python -m tests.benchmarks.chaos local|ray [FIRST_SEED] [RUNS] [MOST_BLOWS]

The search is the brute force over some outer choices of setting 1: real processes of `poseidon-search`, with a journal.
It must find the plan and the bound of an undisturbed search and simulate every configuration exactly once (what was
being worked on by a process that was killed is not counted, and done again). Nothing may be left behind: no process, no
shared memory, no journal. Only processes that this program started are killed: other searches and other Ray clusters
of the machine are left alone.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import kill, marked, ray_environment, ray_processes, ray_workers, wait_until, with_words

EXPERIMENT = Path(__file__).parents[2] / "configs" / "experiments" / "setting1.yaml"
OPTIONS = ("--policy", "brute-force", "--fixed-dp", "2", "--fixed-tp", "1")
MOST_DRIVER_KILLS = 2
LONGEST_S = 400.0
PAUSES_S = (0.7, 2.5)
"""Range of the time between two blows."""
MOST_BLOWS = 12
NODE = {"num_cpus": 1, "include_log_monitor": False}
MARK = f"POSEIDON_CHAOS={os.getpid()}-{os.urandom(4).hex()}"
"""In the environment of every process that this program starts."""
Plan = dict[str, Any]
Blow = Callable[[], bool]


def reference() -> Plan:
    """The plan of an undisturbed search in one process."""
    run = subprocess.run(command("--json", "-q"), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def command(*options: str) -> list[str]:
    """The search as a command."""
    return [sys.executable, "-m", "poseidon.cli", "search", str(EXPERIMENT), *OPTIONS, *options]


def disturbed(seed: int, where: tuple[str, ...], others: dict[str, Blow], most_blows: int) -> tuple[Plan, Counter[str]]:
    """The plan of a search at which blows are dealt, and how many of each kind; `others` return whether they hit."""
    rng = random.Random(seed)
    blows: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        options = ("--json", "-q", "--out", folder, "--resume", *where)
        driver = start(options)
        until = time.monotonic() + LONGEST_S
        while True:
            try:
                output, errors = driver.communicate(timeout=rng.uniform(*PAUSES_S))
                if driver.returncode == 0 or not blows["node"] or blows["node of the driver"] == most_blows:
                    break
                time.sleep(PAUSES_S[1])  # until the cluster knows which nodes it has
                driver = start(options)  # Ray ends a driver with the node that it is connected to
                blows["node of the driver"] += 1
                continue
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    driver.kill()
                    raise AssertionError(f"seed {seed}: not over after {LONGEST_S} s, blows {blows}") from None
            blow = rng.choice([*others, "driver"])
            if blows.total() >= most_blows:
                continue
            if blow == "driver" and blows["driver"] < MOST_DRIVER_KILLS:
                driver.kill()
                driver.communicate()
                driver = start(options)
                blows[blow] += 1
            elif blow != "driver" and others[blow]():
                blows[blow] += 1
        assert driver.returncode == 0, f"seed {seed}: status {driver.returncode}, {errors}"
        assert sorted(os.listdir(folder)) == ["plan.json"]
    return json.loads(output), blows


def start(options: tuple[str, ...]) -> subprocess.Popen[str]:
    """A driver in a process group of its own."""
    return subprocess.Popen(
        command(*options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def kill_one(find: Callable[[], list[int]], rng: random.Random) -> bool:
    """Kills one of some processes."""
    ids = find()
    return bool(ids) and kill(rng.choice(ids))


def local_workers() -> list[int]:
    """Ids of the worker processes of all drivers of this program, also of those that were killed."""
    return [pid for pid in marked(MARK) if pid in with_words("multiprocessing.spawn", "spawn_main")]


def run_local(seed: int, most_blows: int) -> tuple[Plan, Counter[str]]:
    """With two worker processes."""
    rng = random.Random(f"workers {seed}")
    plan, blows = disturbed(seed, ("--workers", "2"), {"worker": lambda: kill_one(local_workers, rng)}, most_blows)
    assert wait_until(lambda: not local_workers()), "worker processes are left behind"
    assert not shared_memory(), "shared memory is left behind"
    return plan, blows


def shared_memory() -> list[Path]:
    """Folders of worker processes whose driver is gone."""
    shared = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
    return [path for path in shared.glob("poseidon-workers-*") if not Path("/proc", path.name.split("-")[2]).exists()]


def run_ray(seed: int, most_blows: int, address: str, nodes: Nodes) -> tuple[Plan, Counter[str]]:
    """On a Ray cluster of a head and two nodes, all on this machine."""
    rng = random.Random(f"cluster {seed}")
    folder = os.environ["RAY_TMPDIR"]
    blows: dict[str, Blow] = {
        "worker": lambda: kill_one(lambda: ray_workers(folder), rng),
        "actor": lambda: kill_one(lambda: ray_processes(folder, "ray::IncumbentActor"), rng),
        "node": lambda: nodes.replace(rng),
    }
    result = disturbed(seed, ("--ray", address), blows, most_blows)
    assert wait_until(lambda: not ray_workers(folder)), "workers of the search are left behind"
    assert wait_until(lambda: not ray_processes(folder, "ray::IncumbentActor")), "an actor is left behind"
    assert not list(Path(folder).glob("poseidon-incumbent-*")), "the actor's file is left behind"
    return result


class Nodes:
    """The worker nodes of a cluster."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._nodes = [cluster.add_node(**NODE), cluster.add_node(**NODE)]

    def replace(self, rng: random.Random) -> bool:
        """Removes a node without warning and adds another."""
        node = self._nodes.pop(rng.randrange(len(self._nodes)))
        self._cluster.remove_node(node, allow_graceful=False)
        self._nodes.append(self._cluster.add_node(**NODE))
        return True


@contextmanager
def cluster() -> Iterator[tuple[str, Nodes]]:
    """A Ray cluster, and its address; at the end no process of it is left."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    try:
        yield made.address, Nodes(made)
    finally:
        made.shutdown()
    assert wait_until(lambda: not ray_processes(os.environ["RAY_TMPDIR"])), "Ray processes are left behind"


def assert_same(plan: Plan, expected: Plan) -> None:
    """The same plan with the same proof, every configuration simulated once."""
    for field in ("status", "iteration_time_ms", "lower_bound_ms", "gap", "dp", "pp", "stages", "micro_batch_size"):
        assert plan[field] == expected[field], f"{field}: {plan[field]}, expected {expected[field]}"
    for field in ("simulations", "nodes", "outer_choices"):
        assert plan["search"][field] == expected["search"][field], field
    assert plan["search"]["warnings"] == expected["search"]["warnings"]


def main() -> None:
    """Runs one seed after the other."""
    os.environ["POSEIDON_CHAOS"] = MARK.partition("=")[2]
    if sys.argv[1] == "local":
        run_all(run_local)
        return
    assert sys.argv[1] == "ray", sys.argv
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ.update(ray_environment(folder))
        with cluster() as (address, nodes):
            run_all(lambda seed, most_blows: run_ray(seed, most_blows, address, nodes))


def run_all(how: Callable[[int, int], tuple[Plan, Counter[str]]]) -> None:
    """One seed after the other, as the command line says."""
    first, runs = (int(sys.argv[2]) if len(sys.argv) > 2 else 1), (int(sys.argv[3]) if len(sys.argv) > 3 else 20)
    most_blows = int(sys.argv[4]) if len(sys.argv) > 4 else MOST_BLOWS
    expected = reference()
    total: Counter[str] = Counter()
    for seed in range(first, first + runs):
        started = time.monotonic()
        plan, blows = how(seed, most_blows)
        assert_same(plan, expected)
        total += blows
        print(f"seed {seed}: {time.monotonic() - started:5.1f} s, {dict(sorted(blows.items()))}", flush=True)
    print(f"{runs} of {runs} runs ended with the reference plan; blows: {dict(sorted(total.items()))}")


if __name__ == "__main__":
    main()
