"""The assignment problem: rows to columns, one to one, at the least total cost.

Shortest augmenting paths with potentials (Kuhn 1955; Munkres 1957; the O(n^3) form of Jonker and Volgenant 1987,
"A shortest augmenting path algorithm for dense and sparse linear assignment problems").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def least_cost_assignment(costs: Floats) -> list[int]:
    """The column of each row of a square matrix of finite costs; exact up to rounding."""
    size = len(costs)
    assert costs.shape == (size, size)
    # Column 0 stands for "none": rows and columns are counted from 1 in here.
    row_price, column_price = np.zeros(size + 1), np.zeros(size + 1)
    row_of = np.zeros(size + 1, dtype=np.intp)
    for row in range(1, size + 1):
        _augment(costs, row, row_of, row_price, column_price)
    columns = [0] * size
    for column in range(1, size + 1):
        columns[int(row_of[column]) - 1] = column - 1
    return columns


def _augment(costs: Floats, row: int, row_of: NDArray[np.intp], row_price: Floats, column_price: Floats) -> None:
    """Gives a further row a column, along the cheapest path of changes."""
    size = len(costs)
    row_of[0] = row
    distance = np.full(size + 1, np.inf)
    before = np.zeros(size + 1, dtype=np.intp)
    done = np.zeros(size + 1, dtype=bool)
    column = 0
    while row_of[column] != 0:
        done[column] = True
        current = row_of[column]
        reduced = costs[current - 1] - row_price[current] - column_price[1:]
        open_ = ~done[1:]
        better = open_ & (reduced < distance[1:])
        distance[1:][better] = reduced[better]
        before[1:][better] = column
        nearest = int(np.argmin(np.where(open_, distance[1:], np.inf))) + 1
        step = distance[nearest]
        row_price[row_of[done]] += step
        column_price[done] -= step
        distance[~done] -= step
        column = nearest
    while column:
        row_of[column] = row_of[before[column]]
        column = int(before[column])
