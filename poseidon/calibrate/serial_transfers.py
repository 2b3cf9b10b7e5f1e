"""Stage times where a stage stands still for every message that it sends or receives, one after the other.

DeepSpeed's pipeline engine runs so: sending and receiving are calls of their own in the stream of computation
(deepspeed/runtime/pipe/engine.py, `_exec_send_activations`, `_exec_recv_grads` and their kin). The simulator's
transfers run beside computation; here they are part of the operations of both stages, and take no time between them. A
message that nothing waits for is so counted once too often, when the pipeline fills and drains.
"""

from __future__ import annotations

from poseidon.simulate import StageTimes, stage_times


def with_serial_transfers(times: StageTimes) -> StageTimes:
    """The times of stages that send and receive within their operations; for one chunk a stage."""
    forward, backward = times.forward_ms.copy(), times.backward_ms.copy()
    last = len(forward) - 1
    for stage in range(last + 1):
        if stage < last:
            forward[stage] += times.send_forward_ms[stage]
            backward[stage] += times.send_backward_ms[stage + 1]
        if stage > 0:
            forward[stage] += times.send_forward_ms[stage - 1]
            backward[stage] += times.send_backward_ms[stage]
    return stage_times(forward.tolist(), backward.tolist(), all_reduce_ms=times.all_reduce_ms.tolist())
