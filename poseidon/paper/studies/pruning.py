"""What the rivals' pruning loses against the proven optimum, with LLaMA-3 on 16 A2-2 and 16 A2-3 (Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from poseidon.paper.entrant_row import ENTRANT_COLUMNS, entrant_row
from poseidon.paper.request import Request
from poseidon.paper.study import Row, Study
from poseidon.sweep.schema import Column

CASES = (("figure3-8b", 128), ("figure3-70b", 32), ("figure3-70b", 128))
"""(experiment, global batch): the paper names the models and the cluster, but not its three settings."""
ENTRANT_NAMES = ("exact", "exact-wide", "metis", "hexiscale")


def _run(request: Request) -> Iterator[Row]:
    for number, (name, batch) in enumerate(CASES, start=1):
        for entrant in ENTRANT_NAMES:

            def measure(number: int = number, name: str = name, batch: int = batch, by: str = entrant) -> list[Row]:
                request.tell(f"{name}, global batch {batch}, {by}")
                experiment = request.experiment(name, training={"global_batch_size": batch})
                return [{"case": number, **entrant_row(request, experiment, by)}]

            yield from request.part(f"{number} {entrant}", measure)


STUDY = Study(
    name="pruning",
    title="the rivals' plans beside the proven optimum, LLaMA-3 on 32 NPUs",
    columns=(Column("case", pa.int32(), "1, 2 or 3"), *ENTRANT_COLUMNS),
    run=_run,
    experiments=tuple(dict.fromkeys(name for name, _ in CASES)),
)
