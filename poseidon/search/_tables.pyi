from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import SearchArrays

def most_layers_after(graph: StageGraph, limits: NDArray[np.int32], least: int) -> NDArray[np.int32]: ...
def most_layers_before(graph: StageGraph, limits: NDArray[np.int32], least: int) -> NDArray[np.int32]: ...

TableParts = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]

class CompletionTables:
    def __init__(
        self,
        graph: StageGraph,
        arrays: SearchArrays,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        first_threshold: NDArray[np.int16],
        limits: NDArray[np.int32],
        most_values: int,
    ) -> None: ...
    @property
    def graph(self) -> StageGraph: ...
    @property
    def num_thresholds(self) -> int: ...
    @property
    def low(self) -> Sequence[float]: ...
    @property
    def high(self) -> Sequence[float]: ...
    @property
    def num_values(self) -> int: ...
    @property
    def parts(self) -> TableParts: ...
    @property
    def root_bounds(self) -> NDArray[np.float64]: ...
    def minimiser(
        self, arrays: SearchArrays, first_threshold: NDArray[np.int16], threshold: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None: ...

def restored_tables(
    graph: StageGraph,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    lowest: NDArray[np.int32],
    highest: NDArray[np.int32],
    values: NDArray[np.float64],
) -> CompletionTables: ...
