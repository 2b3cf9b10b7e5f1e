"""The static formula for the time of an iteration that earlier planners use (Poseidon paper, arXiv 2609.06086, Eq. 1).

    sum of t_s  +  (M - 1) x max t_s  +  DP all-reduce

t_s is what one micro-batch takes at stage s: forward, backward and communication. It knows no schedule, adds transfers
that computation hides, and lets the slowest stage alone set the pace. Kept to show what it costs to plan with it.
"""

from __future__ import annotations

import numpy as np

from poseidon.simulate.stage_times import StageTimes


def static_time_ms(times: StageTimes, num_micro_batches: int) -> float:
    """Eq. 1 for stages with these times (ms).

    The round trip over a boundary (an activation there, a gradient back) counts for the stage before it; the all-reduce
    is that of the slowest stage. With chunks a stage's times are those of all its chunks together.
    """
    chunks = times.num_chunks
    crossings = np.full(times.num_stages, chunks)
    crossings[-1] = chunks - 1  # from the last stage to the first stage's next chunk
    round_trip = times.send_forward_ms + np.roll(times.send_backward_ms, -1)
    round_trip = np.where(crossings > 0, round_trip, 0.0)
    per_stage = times.forward_ms.sum(axis=1) + times.backward_ms.sum(axis=1) + crossings * round_trip
    return float(per_stage.sum() + (num_micro_batches - 1) * per_stage.max() + times.all_reduce_ms.max())
