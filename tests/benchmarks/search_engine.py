"""Times the exact search on the shipped experiments and prints the tables of docs/performance.md.

Each case runs in a process of its own, so that its peak memory is its own too. Usage:

    python tests/benchmarks/search_engine.py [SUITE ...] [--markdown FILE] [--figure FILE.svg]

Suites: settings, schedules, wide, scale, growth.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

EXPERIMENTS = Path(__file__).parents[2] / "configs" / "experiments"
SETTINGS = ["setting1", "setting2", "setting3", "setting4", "setting5"]
CLUSTERS = ["setting6-96", "setting6-192", "setting6-288"]
COLUMNS = ["case", "status", "gap %", "time ms", "seconds", "search nodes", "simulations", "outer choices", "peak MB"]


@dataclass(frozen=True)
class Case:
    """One search: an experiment with some of its training and search settings replaced."""

    name: str
    experiment: str
    training: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Nodes of each accelerator, for the growth curves."""
    layers: int = 0


def cases(suite: str) -> list[Case]:
    """The cases of a suite, in the order of its table."""
    stage = {"assignment": "stage"}
    if suite == "settings":
        names = [*SETTINGS, *CLUSTERS, "quickstart"]
        return [
            Case(f"{name}, {by} orders", name, search={"assignment": by}) for name in names for by in ("node", "stage")
        ]
    if suite == "schedules":
        schedules = ["1f1b", "eager_1f1b", "adaptive_1f1b", "interleaved_1f1b", "gpipe"]
        return [
            Case(f"{n}, {s}", n, training={"schedules": [s]})
            for n in [*SETTINGS, *CLUSTERS]
            for s in schedules[: 3 if n in CLUSTERS else 5]
        ]
    if suite == "wide":
        wide: dict[str, dict[str, Any]] = {
            "TP per type": {"tp": "per-type"},
            "TP per stage": {"tp": "per-stage"},
            "idle devices": {"allow_idle": True},
            "TP per stage, idle devices": {"tp": "per-stage", "allow_idle": True},
        }
        found = [
            Case(f"{n}, {label}", n, search={**stage, **values}) for n in SETTINGS[:4] for label, values in wide.items()
        ]
        everything = {"schedules": ["1f1b", "eager_1f1b", "adaptive_1f1b"], "recompute": "auto"}
        found += [Case(f"{n}, 3 schedules, recompute auto", n, training=everything) for n in SETTINGS]
        return [
            *found,
            *(
                Case(f"{n}, mixed stack (DeepSeek-V3 layers, cut down)", n, {"model": "mixed"}, stage)
                for n in SETTINGS[:4]
            ),
        ]
    if suite == "scale":
        return [
            Case("1,152 devices", "scale-1152", search=stage),
            Case("4,608 devices, gap 0.1 %", "scale-4608", search={"gap": 0.001, "time_limit_s": 60.0}),
            Case("10,368 devices, gap 0.1 %", "scale-10368", search={"gap": 0.001, "time_limit_s": 60.0}),
            Case(
                "10,368 devices of 8 types, gap 1 %", "scale-10368-8-types", search={"gap": 0.01, "time_limit_s": 60.0}
            ),
        ]
    return growth_cases()


def growth_cases() -> list[Case]:
    """Growth with devices, types, layers and micro-batches, one at a time, around the paper's setting 6."""
    limits = {"assignment": "stage", "time_limit_s": 60.0}
    close = {"assignment": "stage", "time_limit_s": 30.0, "gap": 0.001}
    counts = {scale: {"A2-2": scale, "A2-3": scale, "A2-4": 4 * scale} for scale in (1, 2, 3, 4, 6, 8, 12)}
    batches = [{"global_batch_size": batch} for batch in (128, 256, 512, 1024, 2048, 4096)]
    return [
        *(Case(f"devices {48 * n}", "setting6-288", search=limits, counts=nodes) for n, nodes in counts.items()),
        *(Case(f"types {n}", f"scale-{n}-types", search=close) for n in range(3, 9)),
        *(Case(f"layers {n}", "setting6-96", search=limits, layers=n) for n in (20, 40, 60, 80, 120, 160)),
        *(Case(f"batch {b['global_batch_size']}", "setting6-288", b, limits) for b in batches),
    ]


def run_case(case: Case) -> dict[str, Any]:
    """Runs one case in this process."""
    from poseidon.cost import costs
    from poseidon.errors import InputError
    from poseidon.inputs import load_experiment
    from poseidon.planner import search_options
    from poseidon.search.solve import solve

    training = {key: value for key, value in case.training.items() if key != "model"}
    experiment = load_experiment(EXPERIMENTS / f"{case.experiment}.yaml", training=training, search=case.search)
    experiment = reshaped(experiment, case)
    started = time.perf_counter()
    try:
        problems = [problem for _, problem in costs(experiment)]
    except InputError as error:
        return {"case": case.name, "status": f"no choice: {str(error)[:60]}"}
    result = solve(problems, search_options(experiment))
    seconds = time.perf_counter() - started
    return {
        "case": case.name,
        "status": str(result.status),
        "gap %": None if result.best is None else round(100 * result.gap, 4),
        "time ms": None if result.best is None else round(result.best.iteration_time_ms, 1),
        "seconds": round(seconds, 3),
        "search nodes": result.counters.search_nodes,
        "simulations": result.counters.simulations,
        "outer choices": result.num_problems,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def reshaped(experiment: Any, case: Case) -> Any:
    """The experiment with another model or other node counts, as the case asks."""
    model, cluster = experiment.model, experiment.cluster
    if case.training.get("model") == "mixed":
        from poseidon.inputs import load_model

        full = load_model(EXPERIMENTS.parent / "models" / "deepseek-v3.yaml")
        experts = full.moe.model_copy(update={"num_experts": 16})
        model = full.model_copy(update={"num_layers": 24, "moe": experts})
    if case.layers:
        model = model.model_copy(update={"num_layers": case.layers})
    if case.counts:
        groups = [group.model_copy(update={"count": case.counts[group.accelerator]}) for group in cluster.nodes]
        cluster = cluster.model_copy(update={"nodes": tuple(groups)})
    return experiment.model_copy(update={"model": model, "cluster": cluster})


def in_own_process(case: Case) -> dict[str, Any]:
    """Runs one case in a fresh process."""
    command = [sys.executable, __file__, "--one", json.dumps(case.__dict__)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"case": case.name, "status": f"failed: {done.stderr.strip().splitlines()[-1][:60]}"}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def show(suite: str, rows: list[dict[str, Any]], console: Console) -> None:
    """Prints a suite's table."""
    table = Table(title=suite)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("case", "status") else "right")
    for row in rows:
        table.add_row(*("" if row.get(column) is None else str(row.get(column)) for column in COLUMNS))
    console.print(table)


def markdown(suite: str, rows: list[dict[str, Any]]) -> str:
    """A suite's table as markdown."""
    lines = [f"### {suite}", "", "| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    lines += ["| " + " | ".join("" if row.get(c) is None else str(row.get(c)) for c in COLUMNS) + " |" for row in rows]
    return "\n".join([*lines, ""])


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Growth curves: seconds and search nodes against devices, types, layers and micro-batches."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
    for axis, what in zip(axes, ("devices", "types", "layers", "batch"), strict=True):
        points = [
            (int(row["case"].split()[1]), row) for row in rows if row["case"].startswith(what) and "seconds" in row
        ]
        axis.plot([x for x, _ in points], [row["seconds"] for _, row in points], "o-", label="seconds")
        for x, row in points:
            if row["gap %"]:
                axis.annotate(f"{row['gap %']:.2f} %", (x, row["seconds"]), fontsize=7)
        axis.set(xlabel="global batch" if what == "batch" else what, ylabel="seconds", yscale="log")
        axis.grid(alpha=0.3)
    figure.suptitle("Search time of the exact policy (labels: gap where not closed)")
    figure.savefig(path)


def main() -> None:
    """Runs the suites that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=["settings", "schedules", "wide", "scale"])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--one")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_case(Case(**json.loads(arguments.one)))))
        return
    console, parts = Console(width=150), []
    for suite in arguments.suites:
        rows = [in_own_process(case) for case in cases(suite)]
        show(suite, rows, console)
        parts.append(markdown(suite, rows))
        if suite == "growth" and arguments.figure:
            plot(rows, arguments.figure)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
