"""`--with`: the search under a constraint finds what trying everything finds; what it suggests instead is right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

import pytest

from poseidon.cost import OuterChoice
from poseidon.errors import InputError
from poseidon.explain.constraint import Constraint, Fixed, parsed_constraint
from poseidon.explain.first_plan import first_plan, problems_of
from poseidon.explain.fixed_search import Infeasible, plan_with
from poseidon.inputs import Experiment
from poseidon.plan import Plan
from poseidon.search.reference import all_configurations, all_depths, reference_time
from poseidon.search.result import StageChoice


def every_plan(experiment: Experiment) -> Iterator[tuple[OuterChoice, tuple[StageChoice, ...], float]]:
    """All configurations of all outer choices, by the exhaustive search."""
    for choice, problem in problems_of(experiment):
        for depths in all_depths(problem):
            for stages in all_configurations(problem, depths):
                yield choice, stages, reference_time(problem, stages, depths)


def matches(choice: OuterChoice, stages: tuple[StageChoice, ...], constraint: Constraint) -> bool:
    """The constraint in plain words."""
    placements = [choice.layout.placements[stage.kind] for stage in stages]
    accelerators, degrees = [item.accelerator for item in placements], {item.tp for item in placements}
    values = {
        "dp": choice.dp,
        "tp": degrees.pop() if len(degrees) == 1 else None,
        "pp": len(stages),
        "micro_batch_size": choice.micro_batch_size,
        "schedule": choice.schedule,
        "layers": tuple(stage.num_layers for stage in stages),
    }
    for item in constraint.fixed:
        if item.key != "order":
            if values[item.key] != item.value:
                return False
            continue
        assert isinstance(item.value, tuple)
        runs = [name for index, name in enumerate(accelerators) if index == 0 or accelerators[index - 1] != name]
        if list(item.value) != accelerators and not (choice.layout.is_exact and list(item.value) == runs):
            return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "pp=2",
        "tp=2",
        "dp=2,tp=1",
        "micro_batch_size=2",
        "layers=2,6",
        "layers=6,2",
        "layers=1,2,2,3",
        "order=fast,slow",
        "order=slow,fast pp=4",
        "order=slow*2,fast*2",
        "order=slow,fast layers=3,5 dp=2",
        "layers=2*4 order=fast,fast,slow,slow",
    ],
)
@pytest.mark.parametrize("space", [{}, {"tp": "per-type", "assignment": "stage"}, {"tp": "per-stage"}])
def test_it_finds_what_trying_everything_finds(
    experiment: Callable[..., Experiment], text: str, space: dict[str, object]
) -> None:
    example = experiment(search=space)
    constraint = parsed_constraint(text.split(), example)
    times = [time for choice, stages, time in every_plan(example) if matches(choice, stages, constraint)]
    answer = plan_with(example, constraint, None)
    if not times:
        assert isinstance(answer, Infeasible)
        return
    assert isinstance(answer, Plan)
    assert math.isclose(answer.pipeline.iteration_time_ms, min(times), rel_tol=1e-9)


@pytest.mark.parametrize(
    ("text", "space", "binds", "remedy"),
    [
        ("pp=3", {}, "3 stages do not use every device of the cluster; numbers of stages that do: 2, 4", "pp=2"),
        ("dp=3", {}, "3 x micro-batch divides the global batch 16 for none of micro_batch_sizes [1, 2]", "dp=2"),
        ("tp=3", {}, "3 does not divide the model's 8 attention heads", "tp=2"),
        ("tp=3", {"tp": "per-stage"}, "3 does not divide the model's 8 attention heads", "tp=2"),
        ("layers=4,2,2", {}, "3 numbers of layers ask for 3 stages; there can be 2, 4", None),
        ("order=fast,slow,fast", {}, "neither one for each stage", "order="),
        ("order=fast,slow,fast,slow", {}, "each stage would find room for itself, but not all of them in this", None),
    ],
)
def test_what_binds_is_said_with_the_nearest_value(
    experiment: Callable[..., Experiment], text: str, space: dict[str, object], binds: str, remedy: str | None
) -> None:
    example = experiment(search=space)
    answer = plan_with(example, parsed_constraint([text], example), None)
    assert isinstance(answer, Infeasible)
    assert binds in str(answer)
    if remedy is not None:
        assert f"A plan is possible with {remedy}" in str(answer)
    for suggestion in answer.remedies:
        assert isinstance(plan_with(example, parsed_constraint([suggestion], example), None), Plan)


SMALL = {
    "cluster": {
        "accelerators": {
            "fast": {"peak_tflops": 200.0, "memory_gb": 1.4},
            "slow": {"peak_tflops": 100.0, "memory_gb": 1.4},
        }
    }
}


def test_a_stage_that_is_too_full_is_named_with_the_nearest_split(experiment: Callable[..., Experiment]) -> None:
    example = experiment(**SMALL)
    answer = plan_with(example, parsed_constraint(["layers=7,1", "dp=1"], example), None)
    assert isinstance(answer, Infeasible)
    assert "no memory for stage 0 of 7 layers, where at most " in answer.reason
    [layers] = [remedy for remedy in answer.remedies if remedy.startswith("layers=")]
    constraint = parsed_constraint([layers, "dp=1"], example)
    assert isinstance(plan_with(example, constraint, None), Plan)
    over = max(a - b for a, b in zip(constraint.get("layers"), (7, 1), strict=True))
    fitting = {
        tuple(stage.num_layers for stage in stages)
        for choice, stages, _ in every_plan(example)
        if choice.dp == 1 and len(stages) == 2
    }
    assert over == min(max(split[0] - 7, split[1] - 1) for split in fitting)


def test_memory_that_binds_is_said_in_gigabytes(experiment: Callable[..., Experiment]) -> None:
    tight = {"accelerators": {name: {"peak_tflops": 100.0, "memory_gb": 0.9} for name in ("fast", "slow")}}
    answer = plan_with(experiment(cluster=tight), Constraint((Fixed("dp", 1), Fixed("tp", 1))), None)
    assert isinstance(answer, Infeasible)
    assert re.search(r"no plan fits in memory: \d of 8 layers fit at best .* it is short of \d\.\d GB", answer.reason)


def test_the_nearest_count_is_the_nearest_that_has_a_plan(experiment: Callable[..., Experiment]) -> None:
    example = experiment(search={"allow_idle": True}, **SMALL)
    constraint = parsed_constraint(["pp=8"], example)
    answer = plan_with(example, constraint, None)
    assert isinstance(answer, Infeasible)
    feasible = {len(stages) for _, stages, _ in every_plan(example)}
    assert answer.remedies == (f"pp={min(feasible, key=lambda pp: (abs(pp - 8), pp))}",)


def test_a_first_plan_is_one_of_the_plans(experiment: Callable[..., Experiment]) -> None:
    example = first_plan(experiment())
    assert example is not None
    assert (example.choice, example.solution.stages) in {
        (choice, stages) for choice, stages, _ in every_plan(experiment())
    }
    with pytest.raises(InputError):
        problems_of(experiment(training={"global_batch_size": 7, "micro_batch_sizes": [7]}, search={"fixed_dp": 2}))
