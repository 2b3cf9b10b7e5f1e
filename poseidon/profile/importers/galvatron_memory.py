"""Galvatron's memory file (units and formulas: `galvatron`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.profile.importers.cell import Part, PerSequence, Place, Reading
from poseidon.profile.importers.numbers import MIB, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.micro_batch import ELEMENT_BYTES

PARAMETER_BYTES = 4
"""`parameter_size` counts fp32 parameters: 778 MiB for the 202.4 million of a LLaMA-2 7B layer in Galvatron's file."""
STATE_BYTES = 16
"""`model_states` are 4 x the parameter size: weights, gradients and two moments in fp32."""
VOCABULARY_KEYS: dict[str, Part] = {"other_memory_pp_on_first": "embedding", "other_memory_pp_on_last": "head"}


def memory_of(data: Mapping[str, Any], options: ImportOptions, checked: Checked) -> Reading:
    """Weights and activations for each TP degree of the file."""
    suffix = "_sp" if "layertype_0_sp" in data else ""
    layer = data.get(f"layertype_0{suffix}")
    if layer is None:
        message = "has no layertype_0: raw measurements alone (let Galvatron's profiler process them: its last step)"
        checked.say("", message)
        return Reading()
    found: list[PerSequence] = []
    field = f"layertype_0{suffix}"
    content = _of_length(layer, field, options, checked)
    found += _layer(content, field, checked)
    notes = ["galvatron: weights at 2 bytes a parameter"]
    for key, part in VOCABULARY_KEYS.items():
        states = _of_length(data.get(f"{key}{suffix}", {}), f"{key}{suffix}", options, checked)
        if isinstance(states.get("model_states"), Mapping):
            found += _vocabulary(part, states, f"{key}{suffix}", checked)
        else:
            notes.append(f"galvatron: {key}{suffix} names no TP degree and was left out")
    if options.recompute not in (None, "none"):
        found = [PerSequence(m.part, m.tp, m.weight_bytes, None, m.place, m.derived) for m in found]
        notes.append("galvatron: activations were measured without recomputation and were left out")
    return Reading(per_sequence=tuple(found), notes=tuple(notes))


def _of_length(content: Any, field: str, options: ImportOptions, checked: Checked) -> Mapping[str, Any]:
    """What the file has for a sequence length; older files have one and don't name it."""
    mapping = checked.mapping(content, (field,))
    lengths = [key for key in mapping if key.isdigit()]
    if not lengths:
        return mapping
    wanted = str(options.seq_length) if options.seq_length else lengths[0]
    if wanted not in lengths or (len(lengths) > 1 and options.seq_length is None):
        checked.say(field, f"has the sequence lengths {', '.join(lengths[:20])}: give one of them with --seq-length")
        return {}
    return checked.mapping(mapping[wanted], (field, wanted))


def _layer(content: Mapping[str, Any], field: str, checked: Checked) -> Iterator[PerSequence]:
    mib = checked.number(content.get("parameter_size"), f"{field}.parameter_size", "MiB")
    parameters = mib * MIB / PARAMETER_BYTES
    kept = checked.mapping(content.get("tp_activation_per_bsz_dict"), (field, "tp_activation_per_bsz_dict"))
    degrees = {key: value for key, value in kept.items() if key != "checkpoint"}
    for tp, value in checked.counted_keys(degrees, (field, "tp_activation_per_bsz_dict"), "TP degree"):
        place = Place(checked.file, field_path([field, "tp_activation_per_bsz_dict", str(tp)]))
        activation = checked.number(value, place.field, "MiB") * MIB
        yield PerSequence("dense", tp, parameters * ELEMENT_BYTES / tp, activation, place, "x micro-batch size")


def _vocabulary(part: Part, states: Mapping[str, Any], field: str, checked: Checked) -> Iterator[PerSequence]:
    kept = checked.mapping(states.get("activation"), (field, "activation"))
    for tp, value in checked.counted_keys(states["model_states"], (field, "model_states"), "TP degree"):
        place = Place(checked.file, field_path([field, "model_states", str(tp)]))
        weights = checked.number(value, place.field, "MiB") * MIB / STATE_BYTES * ELEMENT_BYTES
        if str(tp) not in kept:
            checked.say(
                f"{field}.activation", f"has no TP degree {tp}, which model_states has; got {shown(dict(kept))}"
            )
        activation = checked.number(kept.get(str(tp), 0.0), f"{field}.activation", "MiB") * MIB
        yield PerSequence(part, tp, weights, activation, place, "x micro-batch size")
