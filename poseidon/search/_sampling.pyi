import numpy as np
from numpy.typing import NDArray

from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import SearchArrays

class Sampler:
    def __init__(self, graph: StageGraph, arrays: SearchArrays, most_after: NDArray[np.int32], seed: int) -> None: ...
    def draw(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None: ...
    def best_of(self, count: int) -> tuple[float, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None: ...
