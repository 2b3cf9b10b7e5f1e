"""What two workers gain over one, on searches that are long by nature.

    python tests/benchmarks/parallel.py local|ray [PAIRS] [brute-force|exact]

brute-force: every configuration of one outer choice of setting 2 with 80 sequences (DP 2, TP 2, micro-batch 1:
77,557,044 of them), the same work however it is shared out. exact: `HARD`, a random problem of the tests, with its best
plan known from the start, so that only the proof is left. One worker and two take turns; starting them is not part of
the time. Prints seconds, the ratio of each pair and its median, and configurations or search nodes for each CPU second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from poseidon.cost import costs  # noqa: E402
from poseidon.cost.problem import Problem  # noqa: E402
from poseidon.inputs import load_experiment  # noqa: E402
from poseidon.profile import load_profile  # noqa: E402
from poseidon.search.backend import Backend  # noqa: E402
from poseidon.search.local_workers import LocalWorkers  # noqa: E402
from poseidon.search.options import SearchOptions  # noqa: E402
from poseidon.search.result import SearchResult  # noqa: E402
from poseidon.search.solve import solve  # noqa: E402
from poseidon.search.warm_start import EarlierPlan, EarlierStage  # noqa: E402
from tests.search.example import EXAMPLE, HARD  # noqa: E402

OUTER_CHOICE = "dp2 tp2 mbs1 1f1b"
GLOBAL_BATCH_SIZE = 80


def enumerated() -> Problem:
    """The outer choice that is enumerated."""
    path = ROOT / "configs" / "experiments" / "setting2.yaml"
    experiment = load_experiment(path, training={"global_batch_size": GLOBAL_BATCH_SIZE})
    return next(p for _, p in costs(experiment, load_profile(experiment)) if p.name == OUTER_CHOICE)


def measure(backend: Backend, what: str, start: EarlierPlan | None) -> SearchResult:
    """One search, on workers that have started."""
    solve([EXAMPLE], backend=backend)
    if what == "brute-force":
        return solve([enumerated()], SearchOptions(policy="brute-force"), backend=backend)
    return solve([HARD], backend=backend, start=start)


def best_of_hard() -> EarlierPlan:
    """The plan that the proof begins with; kept in a file, since finding it takes a while."""
    path = Path(tempfile.gettempdir()) / "poseidon-hard-plan.json"
    if not path.exists():
        best = solve([HARD], backend=LocalWorkers(os.cpu_count() or 1)).best
        assert best is not None
        stages = [[HARD.kinds[stage.kind].name, *stage.layers] for stage in best.stages]
        path.write_text(json.dumps([stages, best.depths]))
    stages, depths = json.loads(path.read_text())
    return EarlierPlan(HARD.name, tuple(EarlierStage(kind, tuple(layers)) for kind, *layers in stages), tuple(depths))


def once(how: str, what: str, workers: int) -> dict[str, float]:
    """In a process of its own, so that every cluster is a new one."""
    command = [sys.executable, __file__, "once", how, what, str(workers)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result


def run_once(how: str, what: str, workers: int) -> None:
    """Measures and prints a line of JSON."""
    start = best_of_hard() if what == "exact" else None
    if how == "ray":
        from ray_jobs import ray_backend

        backend = ray_backend("local", workers)
    else:
        backend = LocalWorkers(workers)
    result = measure(backend, what, start)
    done = result.counters.simulations if what == "brute-force" else result.counters.search_nodes
    best_ms = result.best.iteration_time_ms if result.best else None
    print(json.dumps({"seconds": result.seconds, "done": done, "cpu": result.cpu_seconds, "best_ms": best_ms}))
    backend.close()


def main() -> None:
    """Pairs of one worker and two."""
    if sys.argv[1] == "once":
        run_once(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    how, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for what in sys.argv[3:] or ["brute-force", "exact"]:
        if what == "exact":
            best_of_hard()
        ratios = []
        for _ in range(pairs):
            one, two = once(how, what, 1), once(how, what, 2)
            assert one["best_ms"] == two["best_ms"]
            ratios.append(two["seconds"] / one["seconds"])
            rates = " ".join(f"{run['done'] / run['cpu']:,.0f}" for run in (one, two))
            print(
                f"{how} {what}: {one['seconds']:6.1f} s -> {two['seconds']:6.1f} s, ratio {ratios[-1]:.3f}; "
                f"done {one['done']:,} {two['done']:,}; for each CPU second {rates}",
                flush=True,
            )
        print(f"{how} {what}: median ratio {median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
