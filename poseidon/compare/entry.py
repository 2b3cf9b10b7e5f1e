"""What a policy came to on an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.plan.plan import NoPlan, Pipeline, Plan, SearchSummary
from poseidon.plan.timing import pipeline_times
from poseidon.simulate.static_formula import static_time_ms


@dataclass(frozen=True)
class Refused:
    """A policy that does not plan what the experiment asks for."""

    reason: str


@dataclass(frozen=True)
class Entry:
    """A policy (by its entrant's name) with its answer."""

    name: str
    answer: Plan | NoPlan | Refused

    @property
    def pipeline(self) -> Pipeline | None:
        """The plan's pipeline, if there is a plan."""
        return self.answer.pipeline if isinstance(self.answer, Plan) else None

    @property
    def search(self) -> SearchSummary | None:
        """What the search did, if it began."""
        return None if isinstance(self.answer, Refused) else self.answer.search

    @property
    def status(self) -> str:
        """optimal, feasible, infeasible, unknown or refused."""
        return "refused" if isinstance(self.answer, Refused) else str(self.answer.status)

    @property
    def reason(self) -> str:
        """Why there is no plan; empty where there is one."""
        return "" if isinstance(self.answer, Plan) else self.answer.reason


def static_ms(pipeline: Pipeline) -> float:
    """The pipeline's time under Eq. 1."""
    return static_time_ms(pipeline_times(pipeline), pipeline.num_micro_batches)


def static_error(pipeline: Pipeline) -> float:
    """How far Eq. 1 is off, as a fraction of the time under the DAG; positive where it estimates too much."""
    return static_ms(pipeline) / pipeline.iteration_time_ms - 1


def fits(pipeline: Pipeline) -> bool:
    """Whether every stage fits in its devices' memory."""
    return all(stage.memory.fits for stage in pipeline.stages)


def fullest_fraction(pipeline: Pipeline) -> float:
    """The part of the memory limit that the fullest stage takes."""
    return max(stage.memory.total_bytes / stage.memory.limit_bytes for stage in pipeline.stages)


def table_1_text(pipeline: Pipeline) -> str:
    """The stages as in Table 1 of the Poseidon paper: ``(DP,TP,type,layers)xSTAGES`` in pipeline order."""
    parts: list[tuple[str, int]] = []
    for stage in pipeline.stages:
        text = f"({stage.dp},{stage.tp},{stage.accelerator},{'+'.join(map(str, stage.layers))})"
        if parts and parts[-1][0] == text:
            parts[-1] = (text, parts[-1][1] + 1)
        else:
            parts.append((text, 1))
    return " ".join(text if count == 1 else f"{text}x{count}" for text, count in parts)
