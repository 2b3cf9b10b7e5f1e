"""One process of a real pipeline: PyTorch's own schedule, real messages over gloo, computation that merely sleeps.

Run by `pipeline_run` as ``python -m poseidon.validate.processes.stage_process SPEC.json RANK``; loads torch.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

from poseidon.validate.processes.slow_link import LateSender, install_held_link, install_late_link

WIDTH = 1024
"""Numbers in a message: 4 kB, so that moving them takes no time that matters."""


class _Sleep(torch.autograd.Function):
    """Passes its input on after a while, and the gradient after another while."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, forward_s: float, backward_s: float) -> torch.Tensor:
        ctx.backward_s = backward_s
        time.sleep(forward_s)
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        time.sleep(ctx.backward_s)
        return gradients[0], None, None


class _Chunk(torch.nn.Module):
    """A stage's layers."""

    def __init__(self, forward_ms: float, backward_ms: float) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.seconds = forward_ms / 1e3, backward_ms / 1e3

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        sleep: Any = _Sleep.apply
        result: torch.Tensor = sleep(values * self.scale, *self.seconds)
        return result


class _Clock:
    """Measures how long each forward and backward of a chunk takes, without the waiting for its input."""

    def __init__(self, stages: list[PipelineStage]) -> None:
        self.times_ms: list[dict[str, list[float]]] = [{"forward": [], "backward": []} for _ in stages]
        for stage, times in zip(stages, self.times_ms, strict=True):
            for kind, recorded in times.items():
                name = f"{kind}_one_chunk"
                vars(stage)[name] = self._timed(getattr(stage, name), recorded)

    @staticmethod
    def _timed(function: Any, times_ms: list[float]) -> Any:
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.monotonic()
            result = function(*arguments, **options)
            times_ms.append(1e3 * (time.monotonic() - start))
            return result

        return timed


def main() -> None:
    """Runs the process and writes what it measured beside the specification."""
    path, rank = Path(sys.argv[1]), int(sys.argv[2])
    spec = json.loads(path.read_text(encoding="utf-8"))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    torch.set_num_threads(1)
    num_ranks = len(spec["forward_ms"])
    meeting_place = f"file://{path.with_suffix('.store')}"
    dist.init_process_group("gloo", init_method=meeting_place, rank=rank, world_size=num_ranks)
    sender = None
    if spec["link"] == "late":
        sender = install_late_link(spec["delay_ms"] / 1e3)
    elif spec["link"] == "held":
        install_held_link(spec["delay_ms"] / 1e3)
    transfer_ms = _transfer_ms(rank)
    stages = _stages(spec, rank)
    clock = _Clock(stages)
    iterations = _run(spec, rank, _schedule(spec, stages), sender)
    result = {"iterations": iterations, "times_ms": clock.times_ms, "transfer_ms": transfer_ms}
    path.with_suffix(f".{rank}.json").write_text(json.dumps(result), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _stages(spec: dict[str, Any], rank: int) -> list[PipelineStage]:
    num_ranks, num_chunks = len(spec["forward_ms"]), len(spec["forward_ms"][0])
    example = torch.zeros(1, WIDTH)
    return [
        PipelineStage(
            _Chunk(spec["forward_ms"][rank][chunk], spec["backward_ms"][rank][chunk]),
            chunk * num_ranks + rank,
            num_ranks * num_chunks,
            torch.device("cpu"),
            input_args=(example.clone().requires_grad_(chunk * num_ranks + rank > 0),),
            output_args=(example.clone().requires_grad_(),),
        )
        for chunk in range(num_chunks)
    ]


def _schedule(spec: dict[str, Any], stages: list[PipelineStage]) -> Any:
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target).sum()

    options = {"n_microbatches": spec["num_micro_batches"], "loss_fn": loss}
    if spec["csv"]:
        runtime: Any = schedules._PipelineScheduleRuntime
        schedule = runtime(stages, **options)
        schedule._load_csv(spec["csv"])
        return schedule
    kind = schedules.get_schedule_class(spec["torch_name"])
    single = issubclass(kind, schedules.PipelineScheduleSingle)
    return kind(stages[0] if single else stages, **options)


def _run(spec: dict[str, Any], rank: int, schedule: Any, sender: LateSender | None) -> list[list[float]]:
    """Start and end of each iteration on this machine's clock, in seconds."""
    batch = torch.zeros(spec["num_micro_batches"], WIDTH)
    last = rank == len(spec["forward_ms"]) - 1
    iterations = []
    for _ in range(spec["iterations"]):
        dist.barrier()
        start = time.monotonic()
        schedule.step(*([batch] if rank == 0 else []), **({"target": batch, "losses": []} if last else {}))
        iterations.append([start, time.monotonic()])
        if sender is not None:
            sender.drain()
    return iterations


def _transfer_ms(rank: int, repeats: int = 15) -> float:
    """Half of a round trip between the first two processes, over the link that the schedules use: the median."""
    round_trips_ms = []
    for _ in range(repeats if rank < 2 else 0):
        start = time.monotonic()
        for sending in (0, 1):
            way = dist.isend if rank == sending else dist.irecv
            for work in schedules._batch_p2p([dist.P2POp(way, torch.zeros(1, WIDTH), 1 - rank)]):
                work.wait()
        round_trips_ms.append(1e3 * (time.monotonic() - start))
    dist.barrier()
    return statistics.median(round_trips_ms) / 2 if rank < 2 else 0.0


if __name__ == "__main__":
    main()
