"""Which entries of a list over all layers are the embedding, the transformer layers and the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from poseidon.inputs.model import LayerType, Model
from poseidon.profile.importers.cell import Part
from poseidon.profile.importers.numbers import mean

NORM_SHARE = 0.3
"""An entry before the head that takes less than this part of a layer's time is the final norm (Sailor's LLaMA profiles
list it apart; it takes under 1 % of a layer)."""


@dataclass(frozen=True)
class Stack:
    """Indices into the entries."""

    layers: Mapping[LayerType, tuple[int, ...]]
    head: tuple[int, ...]
    """The output projection, and the final norm where it is listed apart."""

    def values(self, entries: Sequence[float]) -> dict[Part, float]:
        """Embedding: entry 0; a layer: the mean of the layers of its type; head: the sum of its entries."""
        layers: dict[Part, float] = {
            name: mean([entries[index] for index in indices]) for name, indices in self.layers.items()
        }
        return {"embedding": entries[0], **layers, "head": sum(entries[index] for index in self.head)}


def stack_of(times: Sequence[float], model: Model | None) -> Stack | str:
    """The stack of a list with an entry for the embedding, each layer, perhaps the final norm, and the head.

    Returns what is wrong as text where the list can't be one (of this model).
    """
    count = len(times)
    if model is None:
        if count < 3:
            return f"has {count} entries: at least 3 (embedding, layers, head) are expected"
        apart = count > 4 and times[-2] < NORM_SHARE * median(times[1:-2])
        end = count - (2 if apart else 1)
        return Stack({"dense": tuple(range(1, end))}, tuple(range(end, count)))
    if count - model.num_layers not in (2, 3):
        accepted = f"{model.num_layers + 2} (embedding, layers, head) or {model.num_layers + 3} (with a final norm)"
        return f"has {count} entries, but {model.name} has {model.num_layers} layers: {accepted} are accepted"
    layers: dict[LayerType, tuple[int, ...]] = {
        name: tuple(index + 1 for index, other in enumerate(model.layer_types) if other == name)
        for name in model.distinct_layer_types
    }
    return Stack(layers, tuple(range(model.num_layers + 1, count)))
