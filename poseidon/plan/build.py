"""Builds the plan from the search's answer: devices, ranks, layers, times and memory of every stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.finished_stage import FinishedStage, finished_memories
from poseidon.cost.memory import StageMemory
from poseidon.cost.outer import OuterChoice
from poseidon.cost.placement import Placement
from poseidon.plan.devices import idle_devices, stage_devices
from poseidon.plan.plan import LayerRange, NodeDevices, Pipeline, Plan, PlannedStage, SearchSummary
from poseidon.plan.throughput import model_flops_utilisation, tokens_per_second
from poseidon.plan.timing import bubble_fraction, critical_path_shares
from poseidon.schedule import get_schedule
from poseidon.search.evaluate import configuration_times
from poseidon.search.result import SearchResult, Solution
from poseidon.search.tolerance import relative_gap
from poseidon.simulate import StageTimes, Timeline, simulate


def build_plan(
    builder: ProblemBuilder, choices: Mapping[str, OuterChoice], result: SearchResult, search: SearchSummary
) -> Plan:
    """The plan of a search that found one.

    `choices` has the outer choice of each problem name. The iteration time is the simulator's, so that simulating the
    plan's own times gives it back to the last digit.
    """
    best, *others = (_pipeline(builder, choices[item.problem.name], item) for item in result.solutions)
    lower_bound_ms = min(result.lower_bound_ms, best.iteration_time_ms)
    return Plan(
        status=result.status,
        pipeline=best,
        lower_bound_ms=lower_bound_ms,
        gap=relative_gap(best.iteration_time_ms, lower_bound_ms),
        experiment=builder.experiment,
        search=search,
        alternatives=tuple(others),
    )


def _pipeline(builder: ProblemBuilder, choice: OuterChoice, solution: Solution) -> Pipeline:
    experiment = builder.experiment
    placements = [choice.layout.placements[stage.kind] for stage in solution.stages]
    ranges = layer_ranges([stage.layers for stage in solution.stages])
    depths = solution.depths
    sizes = (choice.num_stages, choice.num_micro_batches, choice.num_chunks)
    order = get_schedule(choice.schedule).order(*sizes, depths=depths)
    finished = [FinishedStage(placement, parts) for placement, parts in zip(placements, ranges, strict=True)]
    memories = finished_memories(builder, choice, finished, order)
    times = configuration_times(solution.problem, solution.stages)
    timeline = simulate(order, times)
    devices = stage_devices(placements, experiment.search.assignment)
    stages = tuple(_stages(placements, ranges, devices, memories, times, timeline))
    num_devices = [stage.num_devices for stage in stages]
    return Pipeline(
        outer_choice=choice.name,
        schedule=choice.schedule,
        dp=choice.dp,
        micro_batch_size=choice.micro_batch_size,
        num_micro_batches=choice.num_micro_batches,
        num_chunks=choice.num_chunks,
        depths=depths,
        recompute=choice.recompute,
        iteration_time_ms=timeline.iteration_time_ms,
        tokens_per_second=tokens_per_second(experiment, timeline.iteration_time_ms),
        mfu=model_flops_utilisation(experiment, timeline.iteration_time_ms, stages),
        bubble_fraction=bubble_fraction(timeline, num_devices),
        critical_path=critical_path_shares(timeline),
        stages=stages,
        idle=idle_devices(experiment.cluster, devices),
    )


def layer_ranges(layers: Sequence[Sequence[int]]) -> list[tuple[LayerRange, ...]]:
    """The layers of each chunk of each stage: the model runs through chunk 0 of all stages, then chunk 1, and so on.

    `layers[stage][chunk]` are counts.
    """
    ranges: list[list[LayerRange]] = [[] for _ in layers]
    first = 0
    for chunk in range(len(layers[0])):
        for stage, counts in enumerate(layers):
            end = first + counts[chunk]
            ranges[stage].append((first, end))
            first = end
    return [tuple(parts) for parts in ranges]


def _stages(
    placements: Sequence[Placement],
    ranges: Sequence[tuple[LayerRange, ...]],
    devices: Sequence[tuple[NodeDevices, ...]],
    memories: Sequence[StageMemory],
    times: StageTimes,
    timeline: Timeline,
) -> Iterator[PlannedStage]:
    first_rank = 0
    for index, placement in enumerate(placements):
        end_rank = first_rank + placement.devices_per_stage
        yield PlannedStage(
            kind=placement.name,
            accelerator=placement.accelerator,
            tp=placement.tp,
            layer_ranges=ranges[index],
            devices=devices[index],
            ranks=tuple(range(first_rank, end_rank)),
            forward_ms=tuple(times.forward_ms[index].tolist()),
            backward_ms=tuple(times.backward_ms[index].tolist()),
            send_forward_ms=float(times.send_forward_ms[index]),
            send_backward_ms=float(times.send_backward_ms[index]),
            all_reduce_ms=float(times.all_reduce_ms[index]),
            bubble_ms=timeline.stages[index].bubble_ms,
            memory=memories[index],
        )
        first_rank = end_rank
