"""The stages of a configuration as one line."""

from __future__ import annotations

from itertools import groupby

from poseidon.search.result import Solution


def stages_text(solution: Solution) -> str:
    """Kinds in pipeline order, each with the layers of its stages: ``A2-3/tp1: 2 3 3 2; A2-2/tp1: 3 3 3 3``.

    With chunks the layers of a stage read ``2+3``.
    """
    kinds = solution.problem.kinds
    return "; ".join(
        f"{kinds[kind].name}: {' '.join('+'.join(map(str, stage.layers)) for stage in stages)}"
        for kind, stages in groupby(solution.stages, key=lambda stage: stage.kind)
    )
