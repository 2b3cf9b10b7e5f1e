"""Aceso's profiles: a CSV of operators for each micro-batch size and TP degree, and communication tables.

Format: Aceso (EuroSys 2024) in microsoft/SuperScaler, its runtime profiler and the loader of its search.

- ``MODEL_SIZE_mbs1_tp2_algo0.csv``: op_name, forward-compute, backward-compute (microseconds, TP communication
  included), input_size, output_size, weights, activations, fwd_reserved, bwd_reserved (MiB on one device, 2-byte
  precision);
- ``p2p_intra_node.csv``, ``p2p_inter_node.csv``: two lines: sizes in MB, bandwidths in GB/s;
- ``prim_MODEL_SIZE_all_reduce_2gpus.csv``: data_size(MB), time(ms): all-reduces of 2 devices.

Derived: embedding = encoder-embedding; a layer = the sum of the operators whose names begin with enc- (one layer's
worth is profiled); head = final-layernorm + gpt-post-process. activations: the sum of the operators' `activations`,
without reserved memory. Sequence length, with --model: output_size of the embedding / (2 bytes x hidden size x
micro-batch). Communication: MB = 2^20 bytes; a message's ms = MB / (GB/s), as Aceso's search counts. The accelerator
is not named: --accelerator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from poseidon.inputs.file_model import shown
from poseidon.inputs.links import LinkClass
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Cell, Fact, Part, Place, Reading, byte_cells, time_cells
from poseidon.profile.importers.numbers import MIB, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import accelerator_of, key_of
from poseidon.profile.importers.text import rows_of
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import MeasuredAllReduce, MeasuredTransfer, RowKey

NAME = "aceso"
US_PER_MS = 1e3
COLUMNS = {
    "forward-compute": "microseconds",
    "backward-compute": "microseconds",
    "output_size": "MiB",
    "weights": "MiB",
    "activations": "MiB",
}
OPERATORS: dict[Part, tuple[str, ...]] = {
    "embedding": ("encoder-embedding",),
    "dense": (
        *("enc-1st-layernorm", "enc-attention-qkv", "enc-attention-score", "enc-attention-softmax"),
        *("enc-attention-dropout", "enc-attention-context", "enc-attention-dense", "enc-post-attention-dropout"),
        *("enc-2nd-layernorm", "enc-MLP-GEMM-1", "enc-MLP-gelu", "enc-MLP-GEMM-2", "enc-post-MLP-dropout"),
    ),
    "head": ("final-layernorm", "gpt-post-process"),
}
"""The operators of a GPT in Aceso's own list; T5 and ResNet have others."""
_ALL_REDUCE = re.compile(r"_all_reduce_(\d{1,5})gpus$")
_MODEL = re.compile(r"^(.+?)_(?:mbs|tp)\d")


def kind_of(lines: Sequence[str]) -> str | None:
    """What the first lines are: "operators", "p2p", "all_reduce" or None."""
    first = lines[0].lower().replace(" ", "") if lines else ""
    if first.startswith("op_name,"):
        return "operators"
    if first.startswith("data_size(mb),"):
        return "all_reduce"
    sizes = first.split(",")
    return "p2p" if len(sizes) > 2 and len(lines) > 1 and all(size.isdigit() for size in sizes) else None


def read_aceso(path: Path, options: ImportOptions) -> Reading:
    """The rows of one file."""
    checked = Checked(file_label(path))
    rows = list(rows_of(path))
    lines = [",".join(row) for _, row in rows[:2]]
    match kind_of(lines):
        case "operators":
            reading = _operators(path, rows, options, checked)
        case "p2p":
            reading = _transfers(path, rows, options, checked)
        case "all_reduce":
            reading = _all_reduces(path, rows, options, checked)
        case _:
            checked.say(
                "line 1", "is no header of Aceso's: op_name,..., data_size(MB),time(ms) or sizes in MB are expected"
            )
            reading = Reading()
    checked.finish()
    return reading


Rows = Sequence[tuple[int, list[str]]]


def _operators(path: Path, rows: Rows, options: ImportOptions, checked: Checked) -> Reading:
    at = key_of(path, options, checked)
    table = _table(rows, checked)
    wanted = [name for names in OPERATORS.values() for name in names]
    if missing := [name for name in wanted if name not in table]:
        checked.say("op_name", f"{', '.join(missing[:5])} are missing: the operators of Aceso's GPT are expected")
    checked.finish()
    cells: list[Cell] = []
    for part, names in OPERATORS.items():
        total = {column: sum(table[name][column] for name in names) for column in COLUMNS}
        place = Place(checked.file, names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}")
        forward, backward = total["forward-compute"] / US_PER_MS, total["backward-compute"] / US_PER_MS
        how = f"sum of {len(names)} operators" if len(names) > 1 else ""
        cells += time_cells(part, at, forward, backward, place, how)
        cells += byte_cells(part, at, total["weights"] * MIB, total["activations"] * MIB, place, how)
    note = "aceso: a layer is the sum of 13 operators, the head of 2; reserved memory was left out"
    name = _MODEL.match(path.stem)
    return Reading(
        tuple(cells),
        model=(Fact(name[1], Place(checked.file)),) if name else (),
        seq_length=_seq_length(table, at, options, checked),
        notes=(note,),
    )


def _table(rows: Rows, checked: Checked) -> Mapping[str, Mapping[str, float]]:
    header = rows[0][1]
    if missing := [name for name in COLUMNS if name not in header]:
        checked.say("line 1", f"the columns {', '.join(missing)} are missing")
        return {}
    table: dict[str, Mapping[str, float]] = {}
    for line, row in rows[1:]:
        if len(row) != len(header):
            checked.say(f"line {line}", f"has {len(row)} fields, the header {len(header)}")
            continue
        if row[0] in table:
            checked.say(f"line {line}", f"{shown(row[0])} is given twice")
        values = dict(zip(header, row, strict=True))
        table[row[0]] = {
            name: checked.number(values[name], f"line {line}, {name}", unit) for name, unit in COLUMNS.items()
        }
    return table


def _seq_length(
    table: Mapping[str, Mapping[str, float]], at: RowKey, options: ImportOptions, checked: Checked
) -> tuple[Fact, ...]:
    if options.model is None:
        return ()
    num_bytes = table["encoder-embedding"]["output_size"] * MIB
    tokens = num_bytes / (ELEMENT_BYTES * options.model.hidden_size * at.micro_batch_size)
    if tokens < 1 or abs(tokens - round(tokens)) > 0.01 * tokens:
        return ()
    return (Fact(round(tokens), Place(checked.file, "encoder-embedding, output_size")),)


def _transfers(path: Path, rows: Rows, options: ImportOptions, checked: Checked) -> Reading:
    link: LinkClass = "inter_node" if "inter" in path.stem else "intra_node"
    name = accelerator_of(path, options, checked)
    if len(rows) != 2 or len(rows[0][1]) != len(rows[1][1]):
        checked.say("", "two lines of equal length are expected: sizes in MB, bandwidths in GB/s")
        return Reading()
    transfers: list[MeasuredTransfer] = []
    for size, bandwidth in zip(rows[0][1], rows[1][1], strict=True):
        mib = checked.number(size, "line 1", "MB")
        gb_per_s = checked.number(bandwidth, "line 2", "GB/s")
        if gb_per_s == 0:
            checked.say("line 2", "a bandwidth above 0 is expected")
            continue
        transfers.append(MeasuredTransfer(name, name, link, mib * MIB, mib / gb_per_s))
    return Reading(transfers=tuple(transfers), notes=(f"aceso: transfers {link} from the bandwidth table",))


def _all_reduces(path: Path, rows: Rows, options: ImportOptions, checked: Checked) -> Reading:
    name = accelerator_of(path, options, checked)
    found = _ALL_REDUCE.search(path.stem)
    if found is None or int(found[1]) < 2:
        checked.say("", "the file's name doesn't say an all-reduce of how many devices (prim_..._all_reduce_2gpus.csv)")
        return Reading()
    reductions = tuple(_reductions(rows[1:], name, int(found[1]), checked))
    return Reading(all_reduce=reductions, notes=("aceso: all-reduces inside a node from the table of primitives",))


def _reductions(rows: Rows, name: str, devices: int, checked: Checked) -> Iterator[MeasuredAllReduce]:
    for line, row in rows:
        if len(row) != 2:
            checked.say(f"line {line}", f"has {len(row)} fields: size in MB and time in ms are expected")
            continue
        mib = checked.number(row[0], f"line {line}, data_size(MB)", "MB")
        ms = checked.number(row[1], f"line {line}, time(ms)", "ms")
        yield MeasuredAllReduce(name, 1, devices, "intra_node", mib * MIB, ms)
