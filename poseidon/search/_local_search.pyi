import numpy as np
from numpy.typing import NDArray

from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import SearchArrays

class LocalSearch:
    def __init__(self, arrays: SearchArrays, graph: StageGraph) -> None: ...
    @property
    def num_simulations(self) -> int: ...
    def improve(
        self, kinds: NDArray[np.int32], layers: NDArray[np.int32], time_ms: float, most_simulations: int
    ) -> tuple[float, NDArray[np.int32], NDArray[np.int32]]: ...
