from __future__ import annotations

from collections.abc import Callable

import pytest

from poseidon.errors import InputError
from poseidon.explain.constraint import KEYS, constrained, parsed_constraint
from poseidon.inputs import Experiment


@pytest.mark.parametrize(
    ("texts", "fixed"),
    [
        (["pp=8"], {"pp": 8}),
        (["tp=2,dp=4", "schedule=gpipe"], {"tp": 2, "dp": 4, "schedule": "gpipe"}),
        (["layers=1,2,5"], {"layers": (1, 2, 5)}),
        (["layers=1,2*3,1", "recompute=full"], {"layers": (1, 2, 2, 2, 1), "recompute": "full"}),
        (["micro-batch-size = 2 , order= fast, slow*2,num_chunks=2"], None),
    ],
)
def test_settings_are_read_with_commas_or_repeated(
    experiment: Callable[..., Experiment], texts: list[str], fixed: dict[str, object] | None
) -> None:
    wanted = fixed or {"micro_batch_size": 2, "order": ("fast", "slow", "slow"), "num_chunks": 2}
    constraint = parsed_constraint(texts, experiment())
    assert {item.key: item.value for item in constraint.fixed} == wanted
    assert parsed_constraint(str(constraint).split(), experiment()) == constraint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo=3", f"unknown key 'foo'; accepted: {', '.join(KEYS)}"),
        ("microbatch_size=3", "did you mean micro_batch_size?"),
        ("pp", "'pp' is not KEY=VALUE"),
        ("", "'' is not KEY=VALUE"),
        ("pp=0", "pp: '0' is not a whole number from 1 to 1,000,000"),
        ("pp=8,9", "pp takes one value, not 2"),
        ("pp=1,pp=2", "pp is given twice"),
        ("pp=99999999999999999999", "is not a whole number"),
        ("pp=٣", "is not a whole number"),
        ("num_chunks=1", "num_chunks: '1' is not a whole number from 2"),
        ("schedule=zb_h1", "schedule: 'zb_h1' is not known; accepted: 1f1b, "),
        ("recompute=some", "accepted: none, selective, full"),
        ("layers=4,5", "layers: they add up to 9; the model has 8"),
        ("layers=4,x", "layers: 'x' is not a whole number"),
        ("layers=1*1000000", "layers: they add up to 9; the model has 8"),
        ("order=A100,slow", "order: 'A100' is no accelerator of the cluster; it has fast, slow"),
        ("order=fast*0", "order: '0' is not a whole number"),
    ],
)
def test_what_no_plan_could_have_is_refused_in_one_line(
    experiment: Callable[..., Experiment], text: str, reason: str
) -> None:
    with pytest.raises(InputError) as caught:
        parsed_constraint([text], experiment())
    assert str(caught.value).startswith("--with: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_replace_those_of_the_experiment(experiment: Callable[..., Experiment]) -> None:
    plain = experiment(search={"fixed_tp": 2})
    changed = constrained(plain, parsed_constraint(["tp=1,pp=4", "micro_batch_size=8,num_chunks=4"], plain))
    assert (changed.search.fixed_tp, changed.search.fixed_pp) == (1, 4)
    assert changed.training.micro_batch_sizes == (8,)
    assert (changed.training.num_chunks, changed.training.schedules) == ((4,), ("interleaved_1f1b",))
    assert changed.cluster == plain.cluster
