import numpy as np
from numpy.typing import NDArray

def find_levels(
    previous: NDArray[np.int32], sender: NDArray[np.int32], chained: NDArray[np.int32], levels: NDArray[np.int32]
) -> int: ...
