"""Galvatron's profiles: a computation file, a memory file and bandwidth files, read together.

Format: PKU-DAIR/Hetu-Galvatron 2.x, as its profilers write and its search engine reads them.

| file | key | unit |
| --- | --- | --- |
| computation_profiling_* | layernum[N]_bszB_seqS | ms: forward pass of a model of N layers, B sequences, TP 1 |
| | layertype_0_bszB_seqS | ms: forward of one layer for one sequence of a batch of B |
| | layertype_other_bszB_seqS | ms: forward of embedding and head for one sequence |
| | layertype_0, layertype_other_0 (static mode) | the same, for any batch |
| memory_profiling_* | layertype_0[_sp].SEQ.parameter_size | MiB: a layer's parameters at 4 bytes each |
| | ....tp_activation_per_bsz_dict.TP | MiB that a layer keeps for one sequence |
| | other_memory_pp_on_first/last[_sp].SEQ.model_states.TP | MiB of training state, 16 bytes a parameter |
| | ....activation.TP | MiB kept for one sequence |
| allreduce_bandwidth_* | allreduce_size_N_consec_C | GB/s of the bus; C = 1: neighbours, 0: spread over all devices |
| p2p_bandwidth_* | pp_size_N | GB/s |

Derived: forward = time of one sequence x B; where only layernum keys exist, the difference of two layer counts;
backward = r x forward (r = 2 is Galvatron's own assumption); embedding and head share "other": all of it is the
head's (only it has matrix products) unless --embedding-share. TP > 1 (the file has TP 1 alone), where memory and
bandwidth files and --model are given: forward / TP + 2 all-reduces of 2Th bytes, ms = 2 (t-1)/t x MiB / (GB/s), as
Galvatron's cost model does. Weights = 2 bytes a parameter. Numbers of other_memory_* without TP degrees (before 2.0)
are left out: the file doesn't say at which TP degree they were taken. A micro-batch's time in static mode: linear in
--micro-batch-size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.reading import read_document
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Reading
from poseidon.profile.importers.galvatron_links import Bandwidths, bandwidth_rows, bandwidths_of
from poseidon.profile.importers.galvatron_memory import memory_of
from poseidon.profile.importers.galvatron_times import Times, time_rows, times_of
from poseidon.profile.importers.numbers import Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import accelerator_of

NAME = "galvatron"
_KEY = re.compile(r"layernum\[|layertype_|other_memory_|allreduce_size_|pp_size_|p2p_size_")


def is_galvatron(data: Any) -> bool:
    """Whether a JSON document looks like one."""
    if not isinstance(data, Mapping) or not data:
        return False
    memory = any(isinstance(v, Mapping) and any(str(k).startswith("layernum[") for k in v) for v in data.values())
    return memory or any(_KEY.match(str(key)) for key in data)


def read_galvatron(files: Sequence[Path], options: ImportOptions) -> Reading:
    """The rows of all files together."""
    reading, times, links = Reading(), list[Times](), Bandwidths({}, {}, 0, 0)
    mistakes: list[Mistake] = []
    for path in files:
        checked = Checked(file_label(path))
        try:
            data = read_document(path).data
            accelerator = accelerator_of(path, options, checked)
            if _holds(data, "allreduce_size_", "pp_size_", "p2p_size_"):
                links = links.joined(bandwidths_of(path, data, checked))
            elif _holds(data, "layernum[", "layertype_") and not _nested(data):
                times.append(times_of(data, accelerator, options, checked))
            else:
                reading = reading.joined(memory_of(data, options, checked))
            checked.finish()
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)
    tps = sorted({shared.tp for shared in reading.per_sequence})
    for found in times:
        reading = reading.joined(time_rows(found, tps, links, options))
    return reading.joined(bandwidth_rows(links, options))


def _holds(data: Mapping[str, Any], *starts: str) -> bool:
    return any(str(key).startswith(starts) for key in data)


def _nested(data: Mapping[str, Any]) -> bool:
    """A memory file: mappings inside."""
    return any(isinstance(value, Mapping) for value in data.values())
