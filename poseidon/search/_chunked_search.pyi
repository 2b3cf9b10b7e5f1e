from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import LayerCost
from poseidon.search._branch_and_bound import BranchAndBound
from poseidon.search._tables import CompletionTables
from poseidon.search.arrays import SearchArrays
from poseidon.simulate._longest_path import LongestPath

def times_of(costs: Sequence[LayerCost]) -> NDArray[np.float64]: ...

class ChunkedSearch(BranchAndBound):
    def __init__(
        self,
        arrays: SearchArrays,
        tables: CompletionTables,
        best_ms: float,
        tolerance: float,
        kernel: LongestPath,
        most_splits: int,
    ) -> None: ...
    @property
    def num_open_leaves(self) -> int: ...
