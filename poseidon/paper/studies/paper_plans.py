"""The three plans that Table 1 of the paper prints for setting 2, timed by our simulator under our profile."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from poseidon.compare.entry import Entry
from poseidon.paper.entrant_row import ENTRANT_COLUMNS, entry_to_row, training_values
from poseidon.paper.given_plan import PrintedStage, timed_plan
from poseidon.paper.request import Request
from poseidon.paper.study import Row, Study
from poseidon.sweep.schema import Column

SETTING = "setting2"
A2, A3 = "A2-2", "A2-3"
PLANS: dict[str, tuple[tuple[int, PrintedStage], ...]] = {
    "Poseidon": (
        (1, PrintedStage(2, 1, A3, 2)),
        (2, PrintedStage(2, 1, A3, 3)),
        (1, PrintedStage(2, 1, A3, 2)),
        (4, PrintedStage(2, 1, A2, 3)),
        (2, PrintedStage(2, 1, A3, 2)),
        (2, PrintedStage(2, 1, A3, 1)),
        (4, PrintedStage(2, 1, A2, 3)),
    ),
    "Metis": (
        (8, PrintedStage(2, 1, A2, 3)),
        (2, PrintedStage(2, 2, A3, 3)),
        (1, PrintedStage(2, 1, A3, 3)),
        (1, PrintedStage(2, 1, A3, 2)),
        (1, PrintedStage(2, 1, A3, 3)),
        (1, PrintedStage(2, 1, A3, 2)),
    ),
    "HexiScale": (
        (3, PrintedStage(1, 4, A3, 5)),
        (2, PrintedStage(1, 2, A3, 2)),
        (1, PrintedStage(1, 4, A2, 5)),
        (2, PrintedStage(1, 4, A2, 6)),
        (2, PrintedStage(1, 2, A2, 2)),
    ),
}
"""(number of stages, stage) in pipeline order (arXiv 2609.06086, Table 1)."""


def _run(request: Request) -> Iterator[Row]:
    experiment = request.experiment(SETTING)
    for name, groups in PLANS.items():
        stages = [stage for count, stage in groups for _ in range(count)]
        for size in experiment.training.micro_batch_sizes:
            row: Row = {"system": name, "given_micro_batch_size": size}
            plan = timed_plan(experiment, stages, size)
            if isinstance(plan, str):
                yield row | {"entrant": "given", "status": "refused", "reason": plan, **training_values(experiment)}
            else:
                yield row | entry_to_row(experiment, Entry("given", plan))


STUDY = Study(
    name="paper-plans",
    title="the plans that Table 1 prints, timed here",
    columns=(
        Column("system", pa.string(), "whose plan the paper says it is"),
        Column("given_micro_batch_size", pa.int32(), "sequences of a micro-batch of a replica; the paper prints none"),
        *ENTRANT_COLUMNS,
    ),
    run=_run,
    experiments=(SETTING,),
)
