"""``poseidon calibrate``: efficiency parameters of an accelerator, from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options

if TYPE_CHECKING:
    from poseidon.calibrate.calibration_result import CalibrationResult


@click.command("calibrate", short_help="Fit an accelerator's efficiency parameters to measurements.")
@click.argument("measurements", type=click.Path(path_type=Path))
@click.option("--fit", "names", multiple=True, metavar="PARAMETER", help="Fit this parameter; repeatable.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="The calibrated accelerator."
)
@result_options
def calibrate(measurements: Path, names: tuple[str, ...], as_json: bool, quiet: bool, out: Path | None) -> int:
    """Fits a few efficiency parameters to the runs (or matrix products) of MEASUREMENTS, a YAML file.

    Every run is shown with its error; those that are held out are seen by no fit. --out writes an accelerator file that
    clusters can refer to. Needs SciPy: pip install 'poseidon-planner[calibrate]'.

    \b
    Example:
      poseidon calibrate a100-runs.yaml --out a100-calibrated.yaml
    """
    from poseidon.calibrate.calibration_result import calibrate as run
    from poseidon.calibrate.runs_file import read_measurements
    from poseidon.calibrate.view import calibration_text
    from poseidon.errors import InputError, Mistake
    from poseidon.output.streams import write_error, write_out

    if out is not None and not out.parent.is_dir():
        raise InputError(Mistake(str(out), "", f"cannot be written: there is no folder {out.parent}"))
    result = run(read_measurements(measurements), names)
    reporting = Reporting(as_json, quiet)
    reporting.tell(lambda stream: calibration_text(result, stream))
    reporting.result(result.to_json())
    if out is not None:
        _write(result, out)
        if not quiet:
            write_error(f"written: {out}")
    elif not as_json:
        write_out(result.accelerator_text().rstrip())
    return ExitCode.DONE


def _write(result: CalibrationResult, out: Path) -> None:
    from poseidon.output.streams import write_lines

    write_lines(result.accelerator_text().rstrip("\n").split("\n"), out)
