"""A plan explained to people: what limits it, what is proven, why the other outer choices lose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.explain.outer_choices import Survey, Weighed, refusal_reasons
from poseidon.explain.rounding import decimals_of, rounded_parts
from poseidon.output.console import Columns, is_unicode, rendered, width_of
from poseidon.output.numbers import gigabytes, milliseconds, milliseconds_column, percent, plural
from poseidon.output.plan_view import bar, limits_line, shape_line
from poseidon.plan import Pipeline, Plan
from poseidon.plan.time_breakdown import PART_NAMES, TimeBreakdown
from poseidon.search.result import SolutionStatus, TerminationReason

SAME = 1e-9
"""Times within this fraction count as equal (contract: what `optimal` means)."""
SHOWN_REFUSALS = 3
SHOWN_BOUNDS = 4
WIDE = 110
"""Columns of a line that has room for the reason beside its numbers."""


def explanation_text(plan: Plan, time: TimeBreakdown, survey: Survey, stream: TextIO, *, everything: bool) -> str:
    """The whole explanation as text for `stream`; `everything`: every outer choice and refusal."""
    return rendered(list(_parts(plan, time, survey, stream, everything)), stream)


def _parts(
    plan: Plan, time: TimeBreakdown, survey: Survey, stream: TextIO, everything: bool
) -> Iterator[RenderableType]:
    pipeline = plan.pipeline
    yield Text(f"{plan.experiment.model.name} on {plan.experiment.cluster.name}: why this plan", style="bold")
    yield Text(f"{shape_line(pipeline)}: {milliseconds(pipeline.iteration_time_ms)} ms an iteration")
    yield Text("")
    yield Text("What limits it", style="bold")
    yield Text(limits_line(pipeline))
    yield Text(spent_line(pipeline, time))
    yield Text("")
    yield _stages(pipeline, time, stream)
    yield Text("")
    yield Text("What is proven", style="bold")
    yield Text(proof_line(plan))
    yield Text(fresh_line(pipeline, survey))
    others = [item for item in survey.weighed if item.name != pipeline.outer_choice]
    timed, unfit = [item for item in others if item.fits], [item for item in others if not item.fits]
    if timed:
        shown = timed if everything else _shown(timed)
        yield Text("")
        yield _timed(shown, pipeline, time, stream)
        if len(timed) > len(shown):
            least = milliseconds(min(item.least_ms for item in timed if item not in shown))
            yield Text(f"and {len(timed) - len(shown)} more, which take at least {least} ms.")
        yield Text("compute to all-reduce: what its best plan takes longer (+) or shorter (-) there than this one, ms.")
        if any(item.pipeline is None for item in timed):
            yield Text(">=: no plan of it is faster than this; --all works out its best plan.")
    if unfit:
        yield Text("")
        yield _unfit(unfit, stream, everything)
    yield from _refused(survey, everything)


def _shown(timed: Sequence[Weighed]) -> list[Weighed]:
    """Those that were worked out, and the first that have only a bound."""
    bounded = [item for item in timed if item.pipeline is None][:SHOWN_BOUNDS]
    return [item for item in timed if item.pipeline is not None or item in bounded]


def spent_line(pipeline: Pipeline, time: TimeBreakdown) -> str:
    """The breakdown in one sentence."""
    compute, transfers, bubble, all_reduce = rounded_parts(
        time.parts, pipeline.iteration_time_ms, decimals_of(pipeline.iteration_time_ms)
    )
    accelerator = pipeline.stages[time.busiest].accelerator
    share = percent(time.compute_ms / pipeline.iteration_time_ms)
    return (
        f"Stage {time.busiest} ({accelerator}), which has the most work, computes for {compute} ms ({share}); it waits "
        f"{bubble} ms for other stages (the bubble), {transfers} ms for transfers and {all_reduce} ms for the gradient "
        "all-reduce."
    )


def proof_line(plan: Plan) -> str:
    """What the plan's bound says."""
    if plan.status is SolutionStatus.OPTIMAL:
        count = plural(plan.search.outer_choices, "outer choice")
        return f"No plan is faster: proven over {count} when it was made."
    if not plan.lower_bound_ms:
        return f"Nothing: policy {plan.search.policy} proves no bound."
    stopped = plan.search.termination
    why = "" if stopped is TerminationReason.COMPLETE else f" (the search stopped: {stopped})"
    return (
        f"No plan is faster than {milliseconds(plan.lower_bound_ms)} ms, {percent(plan.gap)} less than this one{why}."
    )


def fresh_line(pipeline: Pipeline, survey: Survey) -> str:
    """What the fresh search found, beside the plan."""
    took = f"in {survey.seconds:.2f} s"
    best = survey.weighed[0]
    if best.pipeline is None:
        return f"A fresh search of the same inputs found no plan {took}: it was stopped too early."
    ratio = pipeline.iteration_time_ms / best.pipeline.iteration_time_ms - 1
    what = "A fresh search of the same inputs" + ("" if survey.is_complete else ", stopped early,")
    if ratio > SAME:
        faster = f"{milliseconds(best.pipeline.iteration_time_ms)} ms, {percent(ratio / (1 + ratio))} less"
        return f"{what} finds a faster plan {took}: {best.name}, {faster}."
    if ratio < -SAME:
        return f"{what} finds none that is as fast {took}."
    return f"{what} finds none that is faster {took}."


def _stages(pipeline: Pipeline, time: TimeBreakdown, stream: TextIO) -> Table:
    columns = Columns(stream)
    columns.number("Stage")
    columns.name("Type")
    columns.number("Layers", "Work ms", "Path", "Waits", "Memory GB")
    columns.name("Balance")
    rounds = pipeline.num_micro_batches
    work = [rounds * (sum(stage.forward_ms) + sum(stage.backward_ms)) for stage in pipeline.stages]
    most, unicode = work[time.busiest] or 1.0, is_unicode(stream)
    for index, (stage, work_ms) in enumerate(zip(pipeline.stages, milliseconds_column(work), strict=True)):
        memory = stage.memory
        columns.row(
            str(index),
            stage.accelerator,
            "+".join(map(str, stage.layers)),
            work_ms,
            percent(pipeline.critical_path.stages[index]),
            percent(stage.bubble_ms / pipeline.iteration_time_ms),
            f"{gigabytes(memory.total_bytes)} / {gigabytes(memory.limit_bytes)}",
            bar(min(1.0, work[index] / most), unicode=unicode),
        )
    return columns.table()


def _timed(items: Sequence[Weighed], pipeline: Pipeline, time: TimeBreakdown, stream: TextIO) -> Table:
    columns = Columns(stream, "Other outer choices: their best plans")
    columns.name("Outer choice")
    columns.number("PP", *PART_NAMES, "ms", "slower")
    if wide := width_of(stream) >= WIDE:
        columns.name("Loses by")
    for item in items:
        slower = item.least_ms / pipeline.iteration_time_ms - 1
        if item.time is None or item.pipeline is None:
            shown, deltas = f">= {milliseconds(item.least_ms)}", ["-"] * 4
        else:
            shown = milliseconds(item.least_ms)
            pairs = zip(item.time.parts, time.parts, strict=True)
            deltas = list(
                rounded_parts(
                    [theirs - ours for theirs, ours in pairs],
                    item.pipeline.iteration_time_ms - pipeline.iteration_time_ms,
                    decimals_of(pipeline.iteration_time_ms),
                    signed=True,
                )
            )
        reason = [_reason(item, time) if slower >= -SAME else "is faster"] if wide else []
        columns.row(item.name, str(item.num_stages), *deltas, shown, f"{100 * slower:.1f} %", *reason)
    return columns.table()


def _reason(item: Weighed, time: TimeBreakdown) -> str:
    """The part that its best plan loses most by."""
    if item.time is None:
        return "its bound"
    losses = [theirs - ours for theirs, ours in zip(item.time.parts, time.parts, strict=True)]
    return PART_NAMES[losses.index(max(losses))]


def _unfit(items: Sequence[Weighed], stream: TextIO, everything: bool) -> Table:
    columns = Columns(stream, "Outer choices without a plan")
    columns.name("Outer choice")
    columns.number("PP", "Stage")
    columns.name("Type")
    columns.number("Layers fit", "Needs GB", "Short GB")
    ordered = sorted(items, key=lambda item: item.shortfall.short_gb if item.shortfall else 0.0)
    for item in ordered if everything else ordered[:8]:
        miss = item.shortfall
        if miss is None:
            columns.row(item.name, str(item.num_stages), "-", "no order of its stages does", "-", "-", "-")
            continue
        fitting = f"{miss.fitting_layers} of {miss.total_layers}"
        needs = f"{miss.needed_bytes / 1e9:.1f} / {miss.limit_bytes / 1e9:.1f}"
        numbers = (fitting, needs, f"{miss.short_gb:.1f}")
        columns.row(item.name, str(item.num_stages), str(miss.stage), miss.accelerator, *numbers)
    if len(items) > 8 and not everything:
        columns.row(f"and {len(items) - 8} more (--all)", "", "", "", "", "", "")
    return columns.table()


def _refused(survey: Survey, everything: bool) -> Iterator[RenderableType]:
    reasons = list(refusal_reasons(survey.refusals))
    if not reasons:
        return
    shown = reasons if everything else reasons[:SHOWN_REFUSALS]
    yield Text("")
    yield Text("Ruled out before any search", style="bold")
    for reason, count in shown:
        yield Text(f"{reason}" + (f" ({count} times)" if count > 1 else ""))
    if len(reasons) > len(shown):
        yield Text(f"and {plural(len(reasons) - len(shown), 'more reason')} (--all)")
