"""Links with a delay between the processes of a real pipeline: the messages are real, they only come later.

``late``: a message arrives `delay` after it was sent, and holds nobody up (a latency; transfers overlap).
``held``: a transfer takes `delay` longer from when both ends are there, and both ends wait for it (transfers block).
Loads torch.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed.pipelining import schedules


class _Pending:
    """Stands for a transfer that another thread carries out."""

    def __init__(self) -> None:
        self._done = threading.Event()

    def finish(self) -> None:
        self._done.set()

    def wait(self) -> None:
        self._done.wait()


class _Sent:
    """Stands for a message that is on its way: its sender need not wait."""

    def wait(self) -> None:
        """Returns at once."""


class LateSender:
    """Sends each message when its delay is over, in the order in which they were given; `drain` waits for all."""

    def __init__(self, delay_s: float) -> None:
        """Starts the thread that sends."""
        self._delay_s = delay_s
        self._waiting: queue.Queue[tuple[float, Callable[[], Any]]] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, operation: dist.P2POp) -> _Sent:
        """Takes a message over; its tensor is copied."""
        tensor = operation.tensor.detach().clone()
        post = lambda: operation.op(  # noqa: E731
            tensor, group=operation.group, tag=operation.tag, group_dst=operation.group_peer
        )
        self._waiting.put((time.monotonic() + self._delay_s, post))
        return _Sent()

    def drain(self) -> None:
        """Returns when everything has been sent."""
        self._waiting.join()

    def _run(self) -> None:
        works = []
        while True:
            due, post = self._waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            works.append(post())  # kept: a work that is thrown away may take its buffer along
            works = works[-64:]
            self._waiting.task_done()


def install_late_link(delay_s: float) -> LateSender:
    """Makes PyTorch's pipeline schedules of this process send over a ``late`` link."""
    sender = LateSender(delay_s)

    def batch(operations: list[dist.P2POp], desc: str | None = None) -> list[Any]:
        return [sender.send(one) if one.op is dist.isend else _receive(one) for one in operations]

    vars(schedules)["_batch_p2p"] = batch
    return sender


def install_held_link(delay_s: float) -> None:
    """Makes PyTorch's pipeline schedules of this process use ``held`` links."""

    def carry(work: Any, pending: _Pending) -> None:
        work.wait()
        time.sleep(delay_s)
        pending.finish()

    def batch(operations: list[dist.P2POp], desc: str | None = None) -> list[Any]:
        result = []
        for one in operations:
            work = _send(one) if one.op is dist.isend else _receive(one)
            pending = _Pending()
            threading.Thread(target=carry, args=(work, pending), daemon=True).start()
            result.append(pending)
        return result

    vars(schedules)["_batch_p2p"] = batch


def _send(one: dist.P2POp) -> Any:
    return one.op(one.tensor, group=one.group, tag=one.tag, group_dst=one.group_peer)


def _receive(one: dist.P2POp) -> Any:
    return one.op(one.tensor, group=one.group, tag=one.tag, group_src=one.group_peer)
