"""Every policy on every setting of the paper (section 6), one search after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from poseidon.paper.entrant_row import ENTRANT_COLUMNS, entrant_row
from poseidon.paper.request import SCALE_SETTINGS, SETTINGS, Request
from poseidon.paper.study import Row, Study
from poseidon.sweep.schema import Column

ENTRANT_NAMES = ("exact", "exact-wide", "eq1", "paper", "metis", "hexiscale")


def _comparisons(name: str, title: str, settings: tuple[str, ...]) -> Study:
    def run(request: Request) -> Iterator[Row]:
        for setting in settings:
            for entrant in ENTRANT_NAMES:

                def measure(setting: str = setting, entrant: str = entrant) -> list[Row]:
                    request.tell(f"{setting}, {entrant}")
                    return [{"setting": setting, **entrant_row(request, request.experiment(setting), entrant)}]

                yield from request.part(f"{setting} {entrant}", measure)

    columns = (Column("setting", pa.string(), "name of the experiment"), *ENTRANT_COLUMNS)
    return Study(name, title, columns, run, settings)


STUDY = _comparisons("comparisons", "every policy on settings 1 to 5", SETTINGS)
SCALE = _comparisons("scale", "every policy on setting 6, 96 to 288 NPUs", SCALE_SETTINGS)
