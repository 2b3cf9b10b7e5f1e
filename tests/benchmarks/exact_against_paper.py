"""The exact policy beside the paper's on the paper's settings: times, simulator calls, what the pruning loses.

Run it from the checkout: ``python tests/benchmarks/exact_against_paper.py [--settings 1 2 3] [--assignments node stage]
[--time-limit S] [--markdown FILE]``. Every search runs in a process of its own, on one core. The paper's seconds are
those of its warm-up and enumeration alone, without the exact bound that its answer is compared with.

The paper's simulator calls follow its text: Eq. 2 judges partial configurations, every complete one is simulated. The
column "above" says how many of these calls Eq. 2, taken over all stages, would have made needless.
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from poseidon.cost.costs import costs
from poseidon.cost.problem import Problem
from poseidon.inputs import load_experiment
from poseidon.search.backend import InProcess
from poseidon.search.options import SearchOptions
from poseidon.search.paper import enumerate_as_paper
from poseidon.search.run import Run as SearchRun
from poseidon.search.shard import Context
from poseidon.search.solve import solve
from poseidon.search.watch import Watch

EXPERIMENTS = Path(__file__).parents[2] / "configs" / "experiments"
HEADINGS = (
    "setting",
    "policy",
    "plan, ms",
    "loss",
    "seconds",
    "simulator calls",
    "above",
    "search nodes",
    "MB",
    "ended",
)


@dataclass(frozen=True)
class Run:
    """One search: `ended` says whether it got to its end, `peak_mb` is the largest memory of its process."""

    setting: str
    policy: str
    best_ms: float
    seconds: float
    simulations: int
    num_above: int
    search_nodes: int
    peak_mb: float
    ended: bool


def problems_of(setting: str, assignment: str) -> list[Problem]:
    """All outer choices of a setting."""
    experiment = load_experiment(EXPERIMENTS / f"setting{setting}.yaml")
    return [replace(problem, assignment=assignment) for _, problem in costs(experiment)]


def run_exact(setting: str, assignment: str, time_limit_s: float) -> Run:
    """The exact policy, gap 0."""
    result = solve(problems_of(setting, assignment), SearchOptions(time_limit_s=time_limit_s))
    best_ms = result.best.iteration_time_ms if result.best else float("inf")
    counters = result.counters
    return Run(
        f"{setting} {assignment}",
        "exact",
        best_ms,
        result.seconds,
        counters.simulations,
        0,
        counters.search_nodes,
        peak_mb(),
        result.status == "optimal",
    )


def run_paper(setting: str, assignment: str, time_limit_s: float) -> Run:
    """The paper's warm-up and enumeration with both prunings."""
    watch = Watch(time_limit_s)
    enumeration = enumerate_as_paper(
        SearchRun(Context(tuple(problems_of(setting, assignment)), SearchOptions(policy="paper")), InProcess(), watch)
    )
    counters = enumeration.counters
    return Run(
        f"{setting} {assignment}",
        "paper",
        enumeration.incumbents.best_ms,
        watch.seconds,
        counters.simulations,
        enumeration.num_above,
        counters.search_nodes,
        peak_mb(),
        enumeration.is_complete,
    )


def peak_mb() -> float:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def rows(exact: Run, paper: Run) -> Iterable[tuple[str, ...]]:
    """Table rows of both searches of a setting, and how they compare."""
    for run in (exact, paper):
        yield (
            run.setting,
            run.policy,
            f"{run.best_ms:,.1f}",
            f"{max(run.best_ms / exact.best_ms - 1, 0):.2%}",
            f"{run.seconds:,.2f}",
            f"{run.simulations:,}",
            f"{run.num_above:,}",
            f"{run.search_nodes:,}",
            f"{run.peak_mb:,.0f}",
            "yes" if run.ended else "no",
        )
    ratio = [f"{paper.seconds / exact.seconds:,.0f} x", f"{paper.simulations / exact.simulations:,.0f} x"]
    if not paper.ended:
        ratio = [f"over {ratio[0]}", "stopped early"]
    yield (exact.setting, "paper / exact", "", "", *ratio, "", "", "", "")


def markdown(lines: Sequence[tuple[str, ...]], time_limit_s: float) -> str:
    """The table for docs/performance.md."""
    head = ["| " + " | ".join(HEADINGS) + " |", "|" + " --- |" * len(HEADINGS)]
    body = ["| " + " | ".join(line) + " |" for line in lines]
    note = f"\n{platform.machine()}, one core, time limit {time_limit_s:g} s.\n"
    return "\n".join([*head, *body]) + "\n" + note


def main() -> None:
    """Runs every pair and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", nargs="+", default=["1", "2", "3"], help="settings of the paper (default 1 2 3)")
    parser.add_argument("--assignments", nargs="+", default=["node", "stage"], choices=["node", "stage"])
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each search (default 300)")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    options = parser.parse_args()
    table = Table(*HEADINGS, title="exact against paper")
    lines: list[tuple[str, ...]] = []
    with ProcessPoolExecutor(max_workers=1, max_tasks_per_child=1) as processes:
        for setting in options.settings:
            for assignment in options.assignments:
                runs = [
                    processes.submit(run, setting, assignment, options.time_limit).result()
                    for run in (run_exact, run_paper)
                ]
                for line in rows(*runs):
                    table.add_row(*line, end_section=line[1] == "paper / exact")
                    lines.append(line)
    Console(width=150).print(table)
    if options.markdown:
        options.markdown.write_text(markdown(lines, options.time_limit), encoding="utf-8")


if __name__ == "__main__":
    main()
