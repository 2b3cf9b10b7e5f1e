import numpy as np
from numpy.typing import NDArray

NUM_LANES: int

class LongestPath:
    def __init__(
        self,
        previous: NDArray[np.int32],
        sender: NDArray[np.int32],
        slot: NDArray[np.int32],
        link: NDArray[np.int32],
        last: NDArray[np.int32],
        num_links: int,
    ) -> None: ...
    def time(
        self,
        durations: NDArray[np.float64],
        transfers: NDArray[np.float64],
        all_reduce: NDArray[np.float64],
        repeats: int = 1,
    ) -> float: ...
    def ends(
        self,
        durations: NDArray[np.float64],
        transfers: NDArray[np.float64],
        all_reduce: NDArray[np.float64],
        ends: NDArray[np.float64],
    ) -> float: ...
    def times(
        self,
        durations: NDArray[np.float64],
        transfers: NDArray[np.float64],
        all_reduce: NDArray[np.float64],
        times: NDArray[np.float64],
        repeats: int = 1,
    ) -> None: ...
