"""The head comment of exported files: what the plan is."""

from __future__ import annotations

from poseidon.output.export.request import Request, label


def about(request: Request, framework: str) -> list[str]:
    """Lines of plain characters, whatever the plan is called."""
    pipeline, experiment = request.pipeline, request.experiment
    shape = f"DP {pipeline.dp} x TP {'/'.join(str(tp) for tp in _degrees(request))} x PP {pipeline.pp}"
    batches = f"{pipeline.num_micro_batches} micro-batches of {pipeline.micro_batch_size}, {label(pipeline.schedule)}"
    layers = [str(sum(stage.layers)) for stage in pipeline.stages]
    shown = "/".join(layers) if len(layers) <= 24 else f"{'/'.join(layers[:24])}/..."
    return [
        f"Poseidon's plan for {label(experiment.model.name)} on {label(experiment.cluster.name)}, for {framework}.",
        f"{shape}, {batches}, layers {shown}: {pipeline.iteration_time_ms:.1f} ms an iteration predicted.",
    ]


def _degrees(request: Request) -> list[int]:
    return list(dict.fromkeys(stage.tp for stage in request.pipeline.stages))
