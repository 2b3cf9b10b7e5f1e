"""How much the choice of fitted runs matters: ``python tests/benchmarks/calibration_choices.py [DRAWS]``.

Draws the fitted runs of poseidon/validate/data at random (8 of the A100 runs, 6 of the Ascend ones), fits the
parameters that the file names or `poseidon calibrate` would choose, and prints the quartiles of the mean absolute error
of the runs that were held out. docs/accuracy.md rests on one choice; this is what others would have given.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import numpy as np

from poseidon.calibrate.fit import fit
from poseidon.calibrate.measurement import mean_error
from poseidon.calibrate.parameters import sensible_parameters
from poseidon.calibrate.runs_file import read_measurements
from poseidon.validate.data_files import DATA

SETS = (("a100.yaml", 8, ("Korthikanti", "vTrain")), ("ascend.yaml", 6, ("Ascend",)))


def held_out_errors(
    name: str, num_fitted: int, groups: tuple[str, ...], draws: int, seed: int = 1
) -> dict[str, list[float]]:
    """For each group of runs the mean absolute error of its held-out runs, one for each draw."""
    found = read_measurements(DATA / name)
    runs = [run for run in found.runs if run.group in groups]
    chooser = random.Random(seed)
    errors: dict[str, list[float]] = {run.group: [] for run in runs}
    for _ in range(draws):
        chosen = set(chooser.sample(range(len(runs)), num_fitted))
        marked = [replace(run, held_out=index not in chosen) for index, run in enumerate(runs)]
        result = fit(marked, found.fit or sensible_parameters(marked))
        for group, means in errors.items():
            items = [item for item in result.of(held_out=True) if item.measurement.group == group]
            if items:
                means.append(mean_error(items))
    return errors


def main(draws: int) -> None:
    """Prints one line for each group of runs."""
    print(f"{'runs':14} {'draws':>6} {'best':>7} {'25 %':>7} {'median':>7} {'75 %':>7} {'worst':>7}")
    for name, num_fitted, groups in SETS:
        for group, errors in held_out_errors(name, num_fitted, groups, draws).items():
            quartiles = np.percentile(errors, [0, 25, 50, 75, 100])
            print(f"{group:14} {len(errors):6} " + " ".join(f"{100 * value:5.1f} %" for value in quartiles))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
