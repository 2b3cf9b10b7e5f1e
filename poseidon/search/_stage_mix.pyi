import numpy as np
from numpy.typing import NDArray

class StageMix:
    def __init__(
        self,
        pool_of_kind: NDArray[np.int32],
        units: NDArray[np.int32],
        pool_units: NDArray[np.int32],
        per_layer: NDArray[np.float64],
        num_stages: int,
        num_layers: int,
        least: int,
        allow_idle: bool,
    ) -> None: ...
    def least_cost(self, most: NDArray[np.float64]) -> float: ...
