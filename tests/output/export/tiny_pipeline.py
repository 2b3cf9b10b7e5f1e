"""Trains a tiny model under an exported plan; started by the plan's launch.sh in place of torchtitan.

    launch.sh PLACE tiny_pipeline.py TIMES.json RESULTS

The stages hold the modules that `poseidon_plan` lists, and PyTorch runs them in the order of its CSV file. A stage's
forward and backward take as long as TIMES says, by virtual stage ({"forward_ms": [...], "backward_ms": [...],
"num_micro_batches": M}): what is left after computing is slept. Each rank writes RESULTS/RANK.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

VOCABULARY, WIDTH, LENGTH, ITERATIONS, LEARNING_RATE = 13, 8, 4, 6, 0.5


def layer(name: str) -> torch.nn.Module:
    """A module of the model; the same weights wherever it is made."""
    torch.manual_seed(1 + int(name.removeprefix("layers.")) if name.startswith("layers.") else 10_000 + len(name))
    if name == "tok_embeddings":
        return torch.nn.Embedding(VOCABULARY, WIDTH)
    if name == "norm":
        return torch.nn.LayerNorm(WIDTH)
    return torch.nn.Linear(WIDTH, VOCABULARY if name == "lm_head" else WIDTH)


class _Enter(torch.autograd.Function):
    """The beginning of a stage's forward and the end of its backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, stage: Stage) -> torch.Tensor:
        ctx.stage = stage
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.stage.finish("B")
        return gradient, None


class _Leave(torch.autograd.Function):
    """The end of a stage's forward and the beginning of its backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, stage: Stage) -> torch.Tensor:
        ctx.stage = stage
        stage.finish("F")
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.stage.begun = time.monotonic()
        return gradient, None


class Stage(torch.nn.Module):
    """One virtual stage: modules by name, in order."""

    def __init__(self, number: int, names: list[str], milliseconds: dict[str, float], ran: list[str]) -> None:
        super().__init__()
        self.number, self.names, self.milliseconds, self.ran = number, names, milliseconds, ran
        self.parts = torch.nn.ModuleList(layer(name) for name in names)
        self.layers_run: set[int] = set()
        self.begun = 0.0
        self.took: dict[str, list[float]] = {"F": [], "B": []}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.begun = time.monotonic()
        parts = dict(zip(self.names, self.parts, strict=True))
        if "tok_embeddings" in parts:
            x = parts.pop("tok_embeddings")(x)
        x = _Enter.apply(x, self)
        for name, part in parts.items():
            x = torch.tanh(part(x)) if name.startswith("layers.") else part(x)
            if name.startswith("layers."):
                self.layers_run.add(int(name.removeprefix("layers.")))
        return _Leave.apply(x, self)

    def finish(self, kind: str) -> None:
        """Sleeps for the rest of the operation's time and writes the operation down."""
        self.ran.append(f"{self.number}{kind}")
        time.sleep(max(0.0, self.begun + self.milliseconds[kind] / 1000 - time.monotonic()))
        self.took[kind].append(1000 * (time.monotonic() - self.begun))


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over all tokens."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


def batch(iteration: int, sequences: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets: the next token follows from the token."""
    generator = torch.Generator().manual_seed(iteration)
    tokens = torch.randint(VOCABULARY, (sequences, LENGTH), generator=generator)
    return tokens, (3 * tokens + 1) % VOCABULARY


def main(times: dict[str, Any], results: Path) -> None:
    """One rank."""
    import poseidon_plan as plan

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert world == plan.PARALLELISM["pipeline_parallel_degree"]
    parts, ran = plan.MODULE_FQNS, []
    modules = [
        Stage(number, names, {"F": times["forward_ms"][number], "B": times["backward_ms"][number]}, ran)
        for number, names in enumerate(parts)
        if number % world == rank
    ]
    stages = [PipelineStage(module, module.number, len(parts), torch.device("cpu")) for module in modules]
    schedule = _PipelineScheduleRuntime(stages, times["num_micro_batches"], loss_fn=loss_of, scale_grads=True)
    schedule._load_csv(plan.SCHEDULE_CSV)
    parameters = [parameter for module in modules for parameter in module.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)
    sequences, losses, milliseconds, took = plan.TRAINING["local_batch_size"], [], [], []
    for iteration in range(ITERATIONS):
        inputs, targets = batch(iteration, sequences)
        of_micro_batches: list[torch.Tensor] = []
        ran.clear()
        for module in modules:
            module.took = {"F": [], "B": []}
        dist.barrier()
        start = time.monotonic()
        given = (inputs,) if rank == 0 else ()
        schedule.step(*given, target=targets if rank == world - 1 else None, losses=of_micro_batches)
        dist.barrier()
        milliseconds.append(1000 * (time.monotonic() - start))
        took.append([{kind: sum(times) / len(times) for kind, times in module.took.items()} for module in modules])
        optimizer.step()
        optimizer.zero_grad()
        if of_micro_batches:
            losses.append(float(torch.stack(of_micro_batches).detach().mean()))
    layers = [sorted(module.layers_run) for module in modules]
    written = {"layers": layers, "ran": ran, "losses": losses, "milliseconds": milliseconds, "took": took}
    (results / f"{rank}.json").write_text(json.dumps(written))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
