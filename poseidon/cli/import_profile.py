"""``poseidon import``: a profile from another tool's files, or the other way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.import_options import import_options, options_from
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.profile.importers import ImportOptions

FORMAT_NAMES = ("metis", "sailor", "galvatron", "aceso", "megatron", "ascend", "varuna", "piper")


@click.command("import", short_help="Make a profile from another tool's files, or the other way.")
@click.argument("files", nargs=-1, required=True, metavar="[FORMAT] FILES...")
@import_options
@result_options
def import_profile(
    files: tuple[str, ...], to: str | None, out: Path | None, as_json: bool, quiet: bool, **given: Any
) -> int:
    """Converts FILES of one configuration or of many into one profile for `--profile`.

    FORMAT is metis, sailor, galvatron, aceso, megatron (logs with --timing-log-level 2), ascend (torch_npu's profiler),
    varuna or piper; without it the files' content tells. Units, formulas and what a format lacks: docs/import.md.

    \b
    Example:
      poseidon import sailor OPT-350_A100-40.json llm_info.json --model opt.yaml --seq-length 2048 --out profile.json
      poseidon import metis profiles/*.json --model llama.yaml --out profile.json
      poseidon import --to metis profile.json --model llama.yaml --out metis/
    """
    reporting = Reporting(as_json, quiet)
    names, paths = _split(files)
    if to is not None:
        return _to_metis(names, paths, out, options_from(given), reporting)
    if out is None and not as_json:
        raise click.UsageError("give --out FILE (or --json) for the profile")
    return _from_files(names, paths, out, options_from(given), reporting)


def _split(files: tuple[str, ...]) -> tuple[str | None, list[Path]]:
    """The format, if the first argument is one (and not the only one, and a file), and the files."""
    alone = len(files) == 1 and Path(files[0]).exists()
    named = files[0] if files[0] in FORMAT_NAMES and not alone else None
    paths = [Path(file) for file in (files[1:] if named else files)]
    if not paths:
        raise click.UsageError(f"give the files of {named} after its name")
    return named, paths


def _from_files(
    format_name: str | None, paths: list[Path], out: Path | None, options: ImportOptions, reporting: Reporting
) -> int:
    from poseidon.output.import_view import import_text
    from poseidon.profile.file import profile_to_json, profile_to_text
    from poseidon.profile.importers import import_profile as imported_from
    from poseidon.whole_file import write_whole_text

    imported = imported_from(paths, options, format_name)
    if out is not None:
        write_whole_text(out, profile_to_text(imported.profile))
    reporting.tell(lambda stream: import_text(imported, str(out) if out is not None else None, stream))
    reporting.result(profile_to_json(imported.profile))
    return ExitCode.DONE


def _to_metis(
    format_name: str | None, paths: list[Path], out: Path | None, options: ImportOptions, reporting: Reporting
) -> int:
    from poseidon.output.numbers import plural
    from poseidon.profile.file import read_profile
    from poseidon.profile.importers.metis_writer import write_metis

    if format_name is not None or len(paths) != 1:
        raise click.UsageError("--to takes one profile of poseidon's own")
    if options.model is None or out is None:
        raise click.UsageError("--to metis needs --model FILE (for the number of layers) and --out DIR")
    written = write_metis(read_profile(paths[0], options.recompute or "none"), options.model, out)
    reporting.tell(lambda _: f"{plural(len(written), 'file')} for Metis in {out}")
    reporting.result({"files": [str(path) for path in written]})
    return ExitCode.DONE
