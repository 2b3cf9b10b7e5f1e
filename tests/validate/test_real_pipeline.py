"""A small real pipeline, where torch is installed: it runs, and takes about as long as the simulator says."""

import pytest

pytest.importorskip("torch.distributed.pipelining", reason="needs torch")
pytestmark = pytest.mark.torch

from poseidon.validate.pipeline_run import PipelineSpec, run_pipeline  # noqa: E402
from poseidon.validate.real_pipeline import CASES, Case, real_pipeline  # noqa: E402

EAGER = Case("eager_1f1b", "", 1, "late")
HELD = Case("1f1b", "1F1B", 1, "held")


def test_all_kinds_of_schedules_and_links_are_covered():
    assert {EAGER, HELD} < set(CASES)
    assert {case.schedule for case in CASES} == {"1f1b", "gpipe", "interleaved_1f1b", "eager_1f1b"}


@pytest.mark.parametrize("case", [EAGER, HELD], ids=lambda case: case.label)
def test_a_pipeline_takes_about_as_long_as_predicted(case):
    """Other jobs may have the machine: twice the target, and the best of three tries."""
    errors = []
    for _ in range(3):
        (row,) = real_pipeline((case,), iterations=6).rows
        # What the slowest stage sleeps: no pipeline is faster.
        assert row.observed > 8 * (26 + 52)
        errors.append(abs(row.relative_error))
        if errors[-1] < 0.1:
            return
    pytest.fail(f"errors of {', '.join(f'{error:.1%}' for error in errors)}")


def test_a_process_that_fails_says_why():
    spec = PipelineSpec("NoSuchSchedule", 4, ((1.0,), (1.0,)), ((1.0,), (1.0,)), iterations=2)
    with pytest.raises(RuntimeError, match=r"process \d of the pipeline failed:[\s\S]*NoSuchSchedule"):
        run_pipeline(spec)
