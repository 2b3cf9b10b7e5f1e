import numpy as np
from numpy.typing import NDArray

def time_prefix(
    warmup: NDArray[np.int32],
    num_micro_batches: int,
    forward: NDArray[np.float64],
    backward: NDArray[np.float64],
    all_reduce: NDArray[np.float64],
    send_forward: NDArray[np.float64],
    send_backward: NDArray[np.float64],
    delay: float,
) -> float: ...
