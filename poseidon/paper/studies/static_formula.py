"""How far Eq. 1 is off the DAG, under every reading of what the paper leaves open (Figure 2).

Readings of t_s (`StaticReadings`) x whose the links between nodes are (`shared_links`) x whose plan is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import pyarrow as pa

from poseidon.compare.entrant import ENTRANTS
from poseidon.inputs.experiment import Experiment
from poseidon.paper.given_plan import timed_plan
from poseidon.paper.request import Request
from poseidon.paper.shared_links import READINGS, with_links
from poseidon.paper.static_readings import static_readings
from poseidon.paper.studies.paper_plans import PLANS
from poseidon.paper.studies.paper_plans import SETTING as PRINTED_SETTING
from poseidon.paper.study import Row, Study
from poseidon.plan.plan import NoPlan, Plan
from poseidon.plan.timing import pipeline_times
from poseidon.planner import find_plan
from poseidon.search.result import TerminationReason
from poseidon.sweep.schema import Column

SETTINGS = ("setting1", "setting2", "setting3")
RIVAL_LIMIT_S = 10.0
"""Metis' plan mostly appears in the first second (docs/rivals.md), and here it is its depth that matters."""
DEEP: dict[str, object] = {"fixed_dp": 2, "fixed_tp": 1}
"""The degrees of the plan that Table 1 of the paper prints for Poseidon: half as many stages as devices."""
SMALL_BATCH_PART = 4
"""A quarter of the setting's global batch: fewer micro-batches, in case the paper's batches are small."""


def _run(request: Request) -> Iterator[Row]:
    for setting in SETTINGS:
        for links in READINGS:

            def measure(setting: str = setting, links: str = links) -> list[Row]:
                return list(_rows(request, setting, links))

            yield from request.part(f"{setting} {links}", measure)


def _rows(request: Request, setting: str, links: str) -> Iterator[Row]:
    """A row for each plan of a setting under one reading of its links."""
    base = request.experiment(setting)
    small = {"global_batch_size": max(1, base.training.global_batch_size // SMALL_BATCH_PART)}
    cases = (
        ("poseidon", "exact", False, base),
        ("poseidon", "exact", True, request.experiment(setting, training=small)),
        ("deep", "exact", False, request.experiment(setting, search=DEEP)),
        ("deep", "exact", True, request.experiment(setting, search=DEEP, training=small)),
        ("hexiscale", "hexiscale", False, base),
        ("metis", "metis", False, base),
    )
    for plan_of, entrant, is_small, experiment in cases:
        request.tell(f"{setting}, links by {links}, plan of {plan_of}")
        answer = _found(request, with_links(experiment, links), entrant)
        yield {**_row(setting, links, plan_of, experiment, answer), "is_small_batch": is_small}
    for system, groups in PLANS.items() if setting == PRINTED_SETTING else ():
        stages = [stage for count, stage in groups for _ in range(count)]
        printed = timed_plan(with_links(base, links), stages, base.training.micro_batch_sizes[0])
        yield _row(setting, links, f"printed {system}", base, printed)


def _found(request: Request, experiment: Experiment, entrant: str) -> Plan | NoPlan:
    limit_s = request.time_limit_s if entrant == "exact" else min(request.time_limit_s, RIVAL_LIMIT_S)
    answer = find_plan(ENTRANTS[entrant].experiment(experiment, limit_s), backend=request.backend)
    if answer.search.termination is TerminationReason.INTERRUPTED:
        raise KeyboardInterrupt
    return answer


def _row(setting: str, links: str, plan_of: str, experiment: Experiment, answer: Plan | NoPlan | str) -> Row:
    row: Row = {
        "setting": setting,
        "links": links,
        "plan_of": plan_of,
        "model": experiment.model.name,
        "global_batch_size": experiment.training.global_batch_size,
        "is_small_batch": False,
        "reason": "",
    }
    if not isinstance(answer, Plan):
        return row | {"reason": answer if isinstance(answer, str) else answer.reason}
    pipeline = answer.pipeline
    times = pipeline_times(pipeline)
    sends = [*times.send_forward_ms[:-1], *times.send_backward_ms[1:]]
    return row | {
        "dp": pipeline.dp,
        "tp": pipeline.tp,
        "pp": pipeline.pp,
        "micro_batch_size": pipeline.micro_batch_size,
        "num_micro_batches": pipeline.num_micro_batches,
        "iteration_time_ms": pipeline.iteration_time_ms,
        "longest_transfer_ms": float(max(sends, default=0.0)),
        "longest_stage_ms": float((times.forward_ms + times.backward_ms).max()),
        **asdict(static_readings(times, pipeline.num_micro_batches)),
    }


STUDY = Study(
    name="static-formula",
    title="Eq. 1 beside the DAG, under every reading",
    columns=(
        Column("setting", pa.string(), "setting1, setting2 or setting3"),
        Column("links", pa.string(), "whose the links between nodes are: each device's, a sending stage's, a node's"),
        Column("plan_of", pa.string(), "poseidon, deep (DP 2, TP 1), metis, hexiscale, or printed SYSTEM (Table 1)"),
        Column("model", pa.string(), "name of the model"),
        Column("global_batch_size", pa.int32(), "sequences of an iteration"),
        Column("is_small_batch", pa.bool_(), "whether that is a quarter of the setting's"),
        Column("reason", pa.string(), "why there is no plan; empty where there is one"),
        Column("dp", pa.int32(), "data-parallel degree of the first stage"),
        Column("tp", pa.int32(), "tensor-parallel degree; null where it differs between stages"),
        Column("pp", pa.int32(), "pipeline stages"),
        Column("micro_batch_size", pa.int32(), "sequences of a micro-batch"),
        Column("num_micro_batches", pa.int32(), "micro-batches of an iteration"),
        Column("iteration_time_ms", pa.float64(), "time of an iteration under the DAG"),
        Column("longest_transfer_ms", pa.float64(), "the slowest boundary, one way"),
        Column("longest_stage_ms", pa.float64(), "forward and backward of a micro-batch at the slowest stage"),
        Column("no_transfers_ms", pa.float64(), "Eq. 1 without communication in t_s"),
        Column("once_ms", pa.float64(), "Eq. 1, a boundary's round trip counted at the stage before it"),
        Column("both_sides_ms", pa.float64(), "Eq. 1, counted at the stages on both sides"),
        Column("both_sides_all_reduces_ms", pa.float64(), "the same with the all-reduces of all stages added up"),
    ),
    run=_run,
    experiments=SETTINGS,
)
