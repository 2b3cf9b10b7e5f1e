"""All studies and exhibits, in the order of the paper."""

from __future__ import annotations

from poseidon.paper.exhibit import Exhibit
from poseidon.paper.exhibits import (
    accuracy_study,
    brute_force,
    figure_2,
    figure_3,
    figure_4,
    figure_7,
    figure_8,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
    figure_15,
    table_1,
    table_2,
)
from poseidon.paper.studies import (
    ablation,
    comparisons,
    kernel_twin,
    paper_plans,
    pruning,
    ridge,
    ridge_problems,
    schedules,
    spaces,
    static_formula,
    warm_up,
)
from poseidon.paper.studies import brute_force as brute_force_study
from poseidon.paper.study import Study

STUDIES: tuple[Study, ...] = (
    static_formula.STUDY,
    pruning.STUDY,
    ridge.STUDY,
    ridge_problems.STUDY,
    comparisons.STUDY,
    comparisons.SCALE,
    spaces.STUDY,
    paper_plans.STUDY,
    kernel_twin.STUDY,
    schedules.STUDY,
    ablation.STUDY,
    warm_up.STUDY,
    brute_force_study.STUDY,
)
"""In the order in which they are measured: the longest last."""

EXHIBITS: tuple[Exhibit, ...] = (
    figure_2.EXHIBIT,
    figure_3.EXHIBIT,
    figure_4.EXHIBIT,
    figure_7.EXHIBIT,
    figure_8.EXHIBIT,
    brute_force.EXHIBIT,
    table_1.EXHIBIT,
    accuracy_study.EXHIBIT,
    figure_10.EXHIBIT,
    figure_11.EXHIBIT,
    figure_12.EXHIBIT,
    figure_13.EXHIBIT,
    figure_14.EXHIBIT,
    figure_15.EXHIBIT,
    table_2.EXHIBIT,
)
