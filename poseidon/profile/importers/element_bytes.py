"""How many bytes a weight takes in a peer's numbers."""

from __future__ import annotations

from collections.abc import Mapping

from poseidon.inputs.model import LayerType, Model
from poseidon.profile.importers.cell import Part
from poseidon.profile.importers.numbers import Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.profile import RowKey

TOLERANCE = 0.05
"""Layers replicate norms and biases over TP: up to this much more counts as equal."""
LAYER_TYPES: tuple[LayerType, ...] = ("dense", "moe")


def element_bytes(
    weights: Mapping[Part, float], at: RowKey, options: ImportOptions, checked: Checked, field: str
) -> int:
    """2 or 4: as the options say, else what makes a layer's bytes those of the model's parameters; 2 and a mistake
    where neither says."""
    if options.element_bytes is not None:
        return options.element_bytes
    if options.model is None:
        checked.say(field, "doesn't say how many bytes a weight takes: give --model FILE or --element-bytes 2 or 4")
        return 2
    for part in LAYER_TYPES:
        if part in weights:
            return _fitting(weights[part], part, at, options.model, checked, field)
    return 2


def _fitting(num_bytes: float, part: LayerType, at: RowKey, model: Model, checked: Checked, field: str) -> int:
    parameters = model.layer_parameters(part) / at.tp
    size = num_bytes / parameters
    for accepted in (2, 4):
        if -0.01 <= size / accepted - 1 <= TOLERANCE:
            return accepted
    checked.say(
        field,
        f"a layer's {num_bytes:,.0f} bytes are {size:.2f} bytes for each of the {parameters:,.0f} parameters of a "
        f"layer of {model.name} at TP {at.tp}: 2 or 4 are expected; is this another model? (--element-bytes overrides)",
    )
    return 2
