"""Sailor's files for two further planners, against the profiles they were made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.profile.profile import RowKey

from .conftest import DATA, Importer, layer

GPU = "RTX-3090"
VARUNA, PIPER, SAILOR = "varuna/profile_1.json", "piper/profile.json", "sailor/OPT-350_RTX-3090.json"


def test_varuna_has_the_times_of_the_profile(import_files: Importer, opt_350: Model) -> None:
    varuna = import_files(VARUNA, accelerator=GPU, model=opt_350, seq_length=2048)
    sailor = import_files(SAILOR, model=opt_350, seq_length=2048)

    assert len(varuna.keys) == 4, "empty mappings are configurations that were not measured"
    for at in varuna.keys:
        assert layer(varuna, GPU, at.tp, at.micro_batch_size) == layer(sailor, GPU, at.tp, at.micro_batch_size)
        assert varuna.profile.head[at].forward_ms == pytest.approx(sailor.profile.head[at].forward_ms)


def test_piper_has_the_sums_and_the_memory_of_the_profile(import_files: Importer, opt_350: Model) -> None:
    piper = import_files(PIPER, accelerator=GPU, model=opt_350, seq_length=2048)
    sailor = import_files(SAILOR, "sailor/llm_info.json", seq_length=2048)

    assert {(at.tp, at.micro_batch_size) for at in piper.keys} >= {(1, 1), (2, 1), (4, 1), (8, 1), (1, 2)}
    for at in piper.keys:
        row, other = (layer(which, GPU, at.tp, at.micro_batch_size) for which in (piper, sailor))
        assert row.forward_ms + row.backward_ms == pytest.approx(other.forward_ms + other.backward_ms, rel=1e-3)
        assert row.backward_ms == pytest.approx(2 * row.forward_ms)
        assert row.weight_bytes == other.weight_bytes
        assert row.activation_bytes == pytest.approx(other.activation_bytes)


def test_varuna_files_are_named_after_their_tp_degree(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    text = (DATA / VARUNA).read_text(encoding="utf-8")
    path = tmp_path / "varuna.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"the file's name doesn't end with the TP degree \(profile_4\.json\): give --tp"
    ):
        import_files(path, accelerator=GPU, model=opt_350, seq_length=2048)
    given = import_files(path, accelerator=GPU, model=opt_350, seq_length=2048, tp=1)
    assert RowKey(GPU, 1, 8) in given.keys


def test_odd_entries_are_refused(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    varuna = json.loads((DATA / VARUNA).read_text(encoding="utf-8"))
    varuna["3"]["2"]["backward"] = "soon"
    del varuna["4"]["4"]["params_bytes"]
    path = tmp_path / "profile_1.json"
    path.write_text(json.dumps(varuna), encoding="utf-8")
    with pytest.raises(InputError) as error:
        import_files(path, accelerator=GPU, model=opt_350, seq_length=2048)
    assert {mistake.field for mistake in error.value.mistakes} == {"3.2.backward", "4.4.params_bytes"}

    piper = json.loads((DATA / PIPER).read_text(encoding="utf-8"))
    piper["1"]["nodes"][3]["TMPCs"]["2"] = []
    path.write_text(json.dumps(piper), encoding="utf-8")
    with pytest.raises(InputError, match=r"1\.nodes\[3\]\.TMPCs\.2: expected a list of one mapping, got \[\]"):
        import_files(path, accelerator=GPU, model=opt_350, seq_length=2048)
