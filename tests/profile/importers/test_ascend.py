"""A profile made up from known times: 4 layers of 2.5 ms forward and 5.2 ms backward."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model

from .conftest import DATA, MODELS, TINY_2048, Importer, layer

KERNELS = "ascend/ASCEND_PROFILER_OUTPUT/kernel_details.csv"
NPU = "A2-2"
GIVEN: dict[str, Any] = {"accelerator": NPU, "tp": 2, "micro_batch_sizes": (1,), "seq_length": 2048}


def filled(tmp_path: Path) -> dict[str, Any]:
    """Options for the parts that the profiler doesn't give."""
    model = tmp_path / "tiny.json"
    model.write_text(Model.model_validate(TINY_2048).model_dump_json(exclude_none=True), encoding="utf-8")
    cluster = MODELS.parent / "clusters" / "npu-1x1.yaml"
    return GIVEN | {"model": Model.model_validate(TINY_2048), "model_file": model, "cluster": cluster, "fill": True}


@pytest.mark.parametrize("file", [KERNELS, "ascend", "ascend/ASCEND_PROFILER_OUTPUT"])
def test_a_layer_is_the_distance_between_attention_kernels(file: str, tmp_path: Path, import_files: Importer) -> None:
    imported = import_files(file, **filled(tmp_path))

    row = layer(imported, NPU, 2, 1)
    assert row.forward_ms == pytest.approx(2.5, rel=0.02)
    assert row.backward_ms == pytest.approx(5.2, rel=0.02)
    assert row.source == ""
    assert "ascend: of the steps 5.1% is communication that isn't hidden, 3.2% idle" in imported.notes


def test_everything_else_is_filled_and_says_so(tmp_path: Path, import_files: Importer) -> None:
    imported = import_files(KERNELS, **filled(tmp_path))
    profile = imported.profile

    assert {row.source for row in (*profile.embedding.values(), *profile.head.values())} == {"analytic"}
    measured = [key for key, row in profile.layers.items() if not row.source]
    assert [(key.at.accelerator, key.at.tp) for key in measured] == [(NPU, 2)]
    assert {key.at.accelerator for key in profile.layers} == {"A2-2", "A2-3"}


def test_embedding_and_head_are_missing_without_filling(import_files: Importer, tiny_2048: Model) -> None:
    with pytest.raises(InputError, match=r"missing: embedding .*forward_ms.*; head .*--fill analytic with --model"):
        import_files(KERNELS, model=tiny_2048, **GIVEN)


def test_what_the_files_do_not_say_must_be_given(import_files: Importer) -> None:
    with pytest.raises(InputError) as error:
        import_files(KERNELS)
    assert [mistake.message.partition(":")[0] for mistake in error.value.mistakes] == [
        "the file's name doesn't say the TP degree (as in _tp2_ or mbs4)",
        "the file's name doesn't say the micro-batch size (as in _tp2_ or mbs4)",
        "neither the file's name nor its content says the accelerator",
    ]


def test_sums_are_refused(import_files: Importer) -> None:
    for file in ("ascend/op_statistic.csv", "ascend/ASCEND_PROFILER_OUTPUT/step_trace_time.csv"):
        with pytest.raises(InputError, match=r"step and operator sums .* can't be split into layers"):
            import_files(file, **GIVEN)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FlashAttentionScore", "Softmax", "has 0 FlashAttentionScore and 0 FlashAttentionScoreGrad kernels, too few"),
        ("FlashAttentionScoreGrad,", "SomethingElse,", "0 FlashAttentionScoreGrad kernels, too few"),
        ("MIX_AIC,1746352800", "MIX_AIC,soon", r"line \d+, Start Time\(us\): .* is no time in microseconds"),
    ],
)
def test_odd_kernels_are_refused(old: str, new: str, message: str, tmp_path: Path, import_files: Importer) -> None:
    text = (DATA / KERNELS).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "kernel_details.csv"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        import_files(path, **GIVEN)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, import_files: Importer) -> None:
    text = (DATA / KERNELS).read_text(encoding="utf-8")
    path = tmp_path / "kernel_details.csv"
    path.write_text(text[: text.rindex("MIX_AIC")], encoding="utf-8")
    with pytest.raises(InputError, match=r"line \d+: has 9 fields, the header 22: is the file cut off\?"):
        import_files(path, **GIVEN)


def test_a_folder_without_kernels_is_refused(tmp_path: Path, import_files: Importer) -> None:
    shutil.copy(DATA / "ascend" / "op_statistic.csv", tmp_path)
    with pytest.raises(InputError, match=r"holds no kernel_details\.csv"):
        import_files(tmp_path, format_name="ascend", **GIVEN)


def recomputing(tmp_path: Path, group: int) -> Path:
    """A profile of 4 layers that are recomputed `group` at a time: 2 ms forward, 3 ms backward, 1 ms of the head."""
    lines, now = ["Type,Start Time(us),Duration(us)"], 0.0

    def run(kind: str, ms: float) -> None:
        nonlocal now
        lines.append(f"{kind},{now:.3f},100.0")
        now += ms * 1e3

    for _ in range(3):
        for _ in range(4):
            run("FlashAttentionScore", 2.0)
        now += 1e3
        for _ in range(4 // group):
            for _ in range(group):
                run("FlashAttentionScore", 2.0)
            for _ in range(group):
                run("FlashAttentionScoreGrad", 3.0)
    path = tmp_path / "kernel_details.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_backward_pass_contains_the_recomputation_of_its_layer(tmp_path: Path, import_files: Importer) -> None:
    imported = import_files(recomputing(tmp_path, 1), **filled(tmp_path), recompute="full")
    row = next(row for row in imported.profile.layers.values() if not row.source)
    assert (row.forward_ms, row.backward_ms) == pytest.approx((2.0, 5.0))


def test_recomputation_must_be_said_and_be_layer_by_layer(tmp_path: Path, import_files: Importer) -> None:
    with pytest.raises(InputError, match=r"FlashAttentionScore runs again before each .*: say --recompute full"):
        import_files(recomputing(tmp_path, 1), **GIVEN)
    with pytest.raises(InputError, match="several layers recomputed at once can't be read"):
        import_files(recomputing(tmp_path, 4), recompute="full", **GIVEN)
