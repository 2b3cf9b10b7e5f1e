"""The conditions under which the page's numbers came about."""

from __future__ import annotations

from poseidon.paper.compared import SCALE, STUDY, setting_label
from poseidon.paper.conduct import Evaluation
from poseidon.paper.identity import Effort

PROFILE = """## Conditions

Times of layers come from the analytic profile ([profile.md](profile.md)): FLOPs at a share of the accelerator's peak,
bytes at the bandwidth of the links. The paper measured its own profile; it prints neither that nor batch sizes and
sequence lengths. The batches are ours, so factors are to be compared, not milliseconds. Metis and HexiScale are
policies written from their descriptions ([rivals.md](rivals.md)).
"""
NOT_REPRODUCED = """Not reproduced, because it takes the paper's hardware:

- the throughput of real runs. Every time below is one of the DAG cost model: all plans are compared under
  the same model;
- Figure 9 and the accuracy study's comparison with real iterations (errors of at most 2 %, 98 % accuracy on average).
  [accuracy.md](accuracy.md) compares predictions with what other people measured and published;
- the seconds of the paper's machine. Seconds below are those of the machine named above; the paper's stand beside them.
"""


def conditions(evaluation: Evaluation) -> str:
    """Profile, batches, machine, and what these numbers are not."""
    return "\n".join([PROFILE, *_settings(evaluation), *_machines(evaluation), "", NOT_REPRODUCED])


def _settings(evaluation: Evaluation) -> list[str]:
    """A table of the settings, where they were compared."""
    studies = [evaluation.found[name] for name in (STUDY, SCALE) if name in evaluation.found]
    rows = {row["setting"]: row for found in studies for row in found.rows}
    if not rows:
        return []
    lines = ["| setting | model | cluster | devices | global batch | sequence | micro-batch |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | --- |")
    for setting, row in rows.items():
        sizes = ", ".join(map(str, row["micro_batch_sizes"]))
        lines.append(
            f"| {setting_label(setting)} | {row['model']} | {row['cluster']} | {row['num_devices']} "
            f"| {row['global_batch_size']} | {row['seq_length']} | {sizes} |"
        )
    return [*lines, ""]


def _machines(evaluation: Evaluation) -> list[str]:
    """On what, with what and how hard was measured."""
    rows = [row for found in evaluation.found.values() for row in found.rows]
    machines = sorted({f"{row['processor']}, {row['num_cpus']} logical processors" for row in rows})
    versions = sorted({f"Poseidon {row['poseidon_version']}, Python {row['python_version']}" for row in rows})
    efforts = list(dict.fromkeys(found.effort for found in evaluation.found.values()))
    lines = [f"Measured on {'; '.join(machines)}; {'; '.join(versions)}."] if rows else []
    return [*lines, *(f"{_effort_text(effort)}" for effort in efforts)]


def _effort_text(effort: Effort) -> str:
    where = {"in-process": "in one process", "local": f"in {effort.num_workers} processes", "ray": "on a Ray cluster"}
    return f"Each search got {effort.time_limit_s:g} s at the most, {where.get(effort.backend, effort.backend)}."
