"""The formats that can be imported, and which one a set of files has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from poseidon.errors import InputError, Mistake
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers import aceso, ascend, galvatron, megatron, metis, piper, sailor, varuna
from poseidon.profile.importers.cell import Reading
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.peek import Peeked, peeked

Reader = Callable[[Sequence[Path], ImportOptions], Reading]


@dataclass(frozen=True)
class Format:
    """One peer's format."""

    name: str
    origin: str
    """The project and version whose format it is."""
    accepts: str
    """What its files are, for refusals."""
    matches: Callable[[Peeked], bool]
    read: Reader


def _each(reader: Callable[[Path, ImportOptions], Reading]) -> Reader:
    """Files that mean something one by one; every file's mistakes are reported together."""

    def read(files: Sequence[Path], options: ImportOptions) -> Reading:
        reading, mistakes = Reading(), list[Mistake]()
        for path in files:
            try:
                reading = reading.joined(reader(path, options))
            except InputError as error:
                mistakes += error.mistakes
        if mistakes:
            raise InputError(mistakes)
        return reading

    return read


FORMATS = {
    fmt.name: fmt
    for fmt in (
        Format(
            "metis",
            "SamsungLabs/Metis 4b24046",
            "JSON with model, execution_time, execution_memory",
            lambda peeked: metis.is_metis(peeked.data),
            _each(metis.read_metis),
        ),
        Format(
            "sailor",
            "eth-easl/sailor cf2c8e3cc5",
            "JSON {batch: {TP: {layer: [3 times]}}}, llm_info or bandwidths",
            lambda peeked: sailor.is_sailor(peeked.data),
            _each(sailor.read_sailor),
        ),
        Format(
            "galvatron",
            "PKU-DAIR/Hetu-Galvatron 2.x",
            "computation_profiling, memory_profiling or bandwidth JSON",
            lambda peeked: galvatron.is_galvatron(peeked.data),
            galvatron.read_galvatron,
        ),
        Format(
            "aceso",
            "microsoft/SuperScaler, Aceso (EuroSys 2024)",
            "CSV with op_name, p2p or all_reduce CSV",
            lambda peeked: aceso.kind_of(peeked.lines) is not None,
            _each(aceso.read_aceso),
        ),
        Format(
            "megatron",
            "Megatron-LM core 0.12 to main d98e8a64, --timing-log-level 2",
            "log with time across ranks (ms)",
            lambda peeked: megatron.is_megatron(peeked.path),
            megatron.read_megatron,
        ),
        Format(
            "ascend",
            "torch_npu profiler, CANN 8.0 to 8.5",
            "kernel_details.csv or its folder",
            lambda peeked: ascend.is_ascend(peeked),
            _each(ascend.read_ascend),
        ),
        Format(
            "varuna",
            "as eth-easl/sailor cf2c8e3cc5 writes it",
            "JSON {layer: {batch: {forward, ...}}}",
            lambda peeked: varuna.is_varuna(peeked.data),
            _each(varuna.read_varuna),
        ),
        Format(
            "piper",
            "as eth-easl/sailor cf2c8e3cc5 writes it",
            "JSON {batch: {nodes, edges}}",
            lambda peeked: piper.is_piper(peeked.data),
            _each(piper.read_piper),
        ),
    )
}


def detected(files: Sequence[Path], format_name: str | None) -> Format:
    """The format of the files: as named, else the one that all of them look like; InputError where there is none."""
    if format_name is not None:
        return FORMATS[format_name]
    found: dict[str, Path] = {}
    mistakes: list[Mistake] = []
    for path in files:
        look = peeked(path)
        names = [fmt.name for fmt in FORMATS.values() if fmt.matches(look)]
        if names:
            found.setdefault(names[0], path)
        else:
            mistakes.append(Mistake(file_label(path), "", _unknown(look)))
    if mistakes:
        raise InputError(mistakes)
    if len(found) > 1:
        (first, path), (second, other), *_ = found.items()
        message = f"looks like {second}, but {file_label(path)} like {first}: import them one by one"
        raise InputError(Mistake(file_label(other), "", message))
    return FORMATS[next(iter(found))]


def _unknown(look: Peeked) -> str:
    if look.known_other:
        return look.known_other
    tried = "; ".join(f"{fmt.name}: {fmt.accepts}" for fmt in FORMATS.values())
    return f"is in none of the formats that were tried ({tried})"
