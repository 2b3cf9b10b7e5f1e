"""All studies and exhibits, in the order of the paper."""

from __future__ import annotations

from poseidon.paper.exhibit import Exhibit
from poseidon.paper.exhibits import (
    figure_2,
    figure_3,
    figure_7,
    figure_8,
    figure_13,
    figure_14,
    figure_15,
    table_1,
    table_2,
)
from poseidon.paper.studies import comparisons, paper_plans, pruning, spaces, static_formula
from poseidon.paper.study import Study

STUDIES: tuple[Study, ...] = (
    static_formula.STUDY,
    pruning.STUDY,
    comparisons.STUDY,
    comparisons.SCALE,
    spaces.STUDY,
    paper_plans.STUDY,
)
"""In the order in which they are measured."""

EXHIBITS: tuple[Exhibit, ...] = (
    figure_2.EXHIBIT,
    figure_3.EXHIBIT,
    figure_7.EXHIBIT,
    figure_8.EXHIBIT,
    table_1.EXHIBIT,
    figure_13.EXHIBIT,
    figure_14.EXHIBIT,
    figure_15.EXHIBIT,
    table_2.EXHIBIT,
)
