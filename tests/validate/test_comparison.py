import math

import pytest

from poseidon.validate.comparison import Comparison, Row, Target, largest_absolute, mean_absolute

ROWS = (Row("a", 110.0, 100.0, "ms", "x"), Row("b", 95.0, 100.0, "ms", "y"), Row("c", 100.0, 100.0, "ms", "x"))


def comparison(**changes):
    fields = {
        "name": "n",
        "title": "t",
        "source": "s",
        "basis": "measured",
        "rows": ROWS,
        "targets": (Target("worst", 0.1, 0.1), Target("rank", 0.9, 0.95, sense="at least")),
        "summary": "",
    }
    return Comparison(**{**fields, **changes})


def test_errors_have_signs_and_belong_to_groups():
    assert comparison().errors() == (0.1, -0.05, 0.0)
    assert comparison(error_kind="absolute").errors("y") == (-5.0,)
    assert comparison().groups == ("x", "y")


def test_means_and_maxima_leave_the_sign_out():
    assert mean_absolute((0.1, -0.05, 0.0)) == pytest.approx(0.05)
    assert largest_absolute((0.1, -0.5)) == 0.5


def test_a_limit_is_met_at_the_limit_and_never_by_nan():
    assert Target("t", 0.1, 0.1).met
    assert not Target("t", 0.11, 0.1).met
    assert Target("t", 0.95, 0.95, sense="at least").met
    assert not Target("t", math.nan, 1.0).met
    assert not Target("t", math.nan, 1.0, sense="at least").met


def test_a_comparison_is_met_if_every_target_is():
    assert not comparison().met
    assert comparison(targets=(Target("worst", 0.1, 0.1),)).met
