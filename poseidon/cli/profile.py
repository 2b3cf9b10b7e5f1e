"""``poseidon profile``: measures a profile on this machine's devices, or merges the files of several machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.profile_job import check_usage, job_from
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.profile.measure.ranks import Environment
    from poseidon.profile.measure.repeats import Repeats

_COUNT = click.IntRange(1)
GRACE_S = 10.0
"""How long the other processes wait for rank 0's message; torchrun ends them when it has failed."""


@click.command("profile", short_help="Measure a profile on this machine's devices; merge profiles.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[EXPERIMENT | FILE...]")
@click.option("--merge", is_flag=True, help="Put the profiles FILE... together into --out.")
@click.option("--model", metavar="FILE", help="Model, or Hugging Face config.json (instead of EXPERIMENT).")
@click.option("--accelerator", metavar="NAME", help="What the cluster file calls this machine's devices.")
@click.option("--seq-length", type=_COUNT, metavar="S", help="Tokens of a sequence.")
@click.option(
    "--micro-batch-size",
    "micro_batch_sizes",
    type=_COUNT,
    multiple=True,
    metavar="N",
    help="Sequences of a micro-batch; repeatable (default: the experiment's, else 1, 2 and 4).",
)
@click.option(
    "--tp",
    "tp_degrees",
    type=_COUNT,
    multiple=True,
    metavar="T",
    help="TP degree; repeatable (default: all that the experiment's nodes allow, else powers of two up to the number "
    "of processes).",
)
@click.option(
    "--recompute",
    type=click.Choice(("none", "selective", "full", "auto")),
    multiple=True,
    help="Recomputation of a layer; repeatable; auto: all three (default: the experiment's, else none).",
)
@click.option("--precision", type=click.Choice(("bf16", "fp16")), help="Of weights and activations (default: bf16).")
@click.option(
    "--sequence-parallel/--no-sequence-parallel",
    default=None,
    help="Whether TP ranks split the sequence outside the products (default: they do).",
)
@click.option(
    "--message-bytes",
    type=click.IntRange(4),
    multiple=True,
    metavar="N",
    help="Size of messages and all-reduces; repeatable (default: powers of 4 that the model needs).",
)
@click.option("--device", type=click.Choice(("auto", "cpu", "cuda", "npu")), default="auto", show_default=True)
@click.option("--warmups", type=click.IntRange(0), default=3, show_default=True, metavar="N")
@click.option("--fewest-samples", type=_COUNT, default=5, show_default=True, metavar="N")
@click.option("--most-samples", type=_COUNT, default=50, show_default=True, metavar="N")
@click.option(
    "--error-limit",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.02,
    show_default=True,
    metavar="F",
    help="Stop sampling when the medians are known this well.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="The profile file.")
@click.option("--fresh", is_flag=True, help="Measure everything again, whatever the journal has.")
@result_options
def profile(files: tuple[Path, ...], merge: bool, as_json: bool, quiet: bool, **options: Any) -> int:
    """Times one layer of each type, embedding and head of a model on this machine's devices, and messages between them.

    EXPERIMENT says which ones a search of it needs; without it options do. Needs PyTorch. Start it with torchrun, one
    process for each device of the node; every finished measurement is kept beside --out, and the same command goes on
    where it was interrupted.

    \b
    Example:
      torchrun --nproc-per-node 8 -m poseidon.cli profile experiment.yaml --accelerator A100 --out a100.json
      poseidon profile --model llama-2-7b.yaml --accelerator A100 --seq-length 4096 --out a100.json
      poseidon profile --merge a100.json ascend.json --out profile.json
    """
    reporting = Reporting(as_json, quiet)
    if merge:
        return _merge(files, options["out"], reporting)
    if len(files) > 1:
        raise click.UsageError("one EXPERIMENT is expected; several files need --merge")
    experiment = files[0] if files else None
    check_usage(experiment, options)
    return _measure(experiment, options, reporting)


def _merge(files: tuple[Path, ...], out: Path | None, reporting: Reporting) -> int:
    from poseidon.output.profile_view import merged_line
    from poseidon.profile.measure.merge import merged_profiles

    if len(files) < 2 or out is None:
        raise click.UsageError("--merge needs at least two files and --out FILE")
    document = merged_profiles(files)
    _write(out, document)
    reporting.tell(lambda stream: merged_line(document, out))
    reporting.result(document)
    return ExitCode.DONE


def _measure(experiment: Path | None, options: dict[str, Any], reporting: Reporting) -> int:
    from importlib.util import find_spec

    from poseidon.errors import InputError, Mistake

    if find_spec("torch") is None:
        message = "needs PyTorch: pip install 'poseidon-planner[profile]', or the torch (and torch_npu) of your vendor"
        raise InputError(Mistake("poseidon profile", "", message))
    from poseidon.output.profile_view import profile_tables
    from poseidon.profile.measure.ranks import Environment

    environment = Environment.read()
    talks = environment.rank == 0
    try:
        document = _measured(experiment, options, environment, tells=talks and not reporting.quiet)
    except InputError as error:
        if talks:
            raise
        return _after_rank_0(error.exit_code)
    if talks:
        out: Path = options["out"]
        _write(out, document)
        reporting.tell(lambda stream: profile_tables(document, out, stream))
        reporting.result(document)
    return ExitCode.DONE


def _measured(
    experiment: Path | None, options: dict[str, Any], environment: Environment, tells: bool
) -> dict[str, Any]:
    """The profile document, on every process."""
    from poseidon.output.profile_view import finished_line
    from poseidon.output.streams import write_error
    from poseidon.profile.measure.device import find_device
    from poseidon.profile.measure.ranks import joined
    from poseidon.profile.measure.run import Finished, measure

    def tell(finished: Finished) -> None:
        if tells:
            write_error(finished_line(finished))

    out: Path = options["out"]
    job = job_from(experiment, options, environment.world_size)
    device = find_device(options["device"], environment.local_rank)
    _check_target(out)
    journal = out.with_name(out.name + ".journal")
    try:
        with joined(environment, device) as ranks:
            return measure(job, ranks, _repeats(options), journal, fresh=options["fresh"], tell=tell)
    except KeyboardInterrupt:
        if tells and journal.exists():
            write_error(f"{journal} keeps what is measured; the same command goes on from there")
        raise


def _after_rank_0(status: int) -> int:
    """Lets rank 0 say what is wrong: torchrun ends all processes as soon as the first one has failed."""
    import time
    from contextlib import suppress

    with suppress(KeyboardInterrupt):  # torchrun's signal
        time.sleep(GRACE_S)
    return status


def _repeats(options: dict[str, Any]) -> Repeats:
    from poseidon.profile.measure.repeats import Repeats

    fewest = options["fewest_samples"]
    return Repeats(options["warmups"], fewest, max(fewest, options["most_samples"]), options["error_limit"])


def _check_target(out: Path) -> None:
    """Before anything is measured; InputError where it could not be written."""
    from poseidon.errors import InputError, Mistake
    from poseidon.output.plan_file import prepare_directory

    prepare_directory(out.parent)
    if out.is_dir():
        raise InputError(Mistake(str(out), "", "is a directory; the name of the profile file is expected"))


def _write(out: Path, document: dict[str, Any]) -> None:
    from poseidon.output.json_text import json_document
    from poseidon.whole_file import write_whole_text

    write_whole_text(out, json_document(document) + "\n")
