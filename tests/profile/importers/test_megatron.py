"""Logs made up from known times: embedding 0.5 / 0.25 ms, layer 4.0 / 8.5, head 3.0 / 5.5, with 0.4 % noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.profile.importers.cell import Place
from poseidon.profile.importers.stage_times import Observation, solved_times
from poseidon.profile.profile import RowKey

from .conftest import DATA, Importer, layer

ALL, FOUR, EIGHT = "megatron/all_4_stages.log", "megatron/minmax_4_layers.log", "megatron/minmax_8_layers.log"
MAX, ONE_LINE = "megatron/max_8_layers.log", "megatron/one_line_4_layers.log"
GPU = "X"
AT = RowKey(GPU, 2, 2)


@pytest.mark.parametrize("files", [[ALL], [FOUR, EIGHT], [ONE_LINE, MAX], [ALL, FOUR, EIGHT]])
def test_every_form_of_log_gives_the_times_it_was_made_from(
    files: list[str], import_files: Importer, tiny_2048: Model
) -> None:
    imported = import_files(*files, accelerator=GPU, model=tiny_2048)

    assert imported.keys == (AT,)
    row = layer(imported, GPU, 2, 2)
    assert row.forward_ms == pytest.approx(4.0, rel=0.02)
    assert row.backward_ms == pytest.approx(8.5, rel=0.02)
    embedding, head = imported.profile.embedding[AT], imported.profile.head[AT]
    assert embedding.forward_ms + head.forward_ms == pytest.approx(3.5, abs=0.3)
    assert embedding.backward_ms + head.backward_ms == pytest.approx(5.75, abs=0.6)


def test_stages_tell_embedding_and_head_apart(import_files: Importer, tiny_2048: Model) -> None:
    profile = import_files(ALL, accelerator=GPU, model=tiny_2048).profile
    assert profile.embedding[AT].forward_ms == pytest.approx(0.5, abs=0.1)
    assert profile.head[AT].forward_ms == pytest.approx(3.0, abs=0.1)


def test_the_arguments_of_the_log_say_how_it_was_trained(import_files: Importer, tiny_2048: Model) -> None:
    profile = import_files(ALL, accelerator=GPU, model=tiny_2048).profile
    assert (profile.seq_length, profile.precision) == (1024, "bf16")
    assert {key.recompute for key in profile.layers} == {"none"}
    with pytest.raises(InputError, match="sequence length 512 does not go with sequence length 1024 of"):
        import_files(ALL, accelerator=GPU, model=tiny_2048, seq_length=512)
    with pytest.raises(InputError, match=r"argument tensor_model_parallel_size: is 2, but --tp says 4"):
        import_files(ALL, accelerator=GPU, model=tiny_2048, tp=4)
    with pytest.raises(InputError, match=r"argument hidden_size: is 2048, but tiny-2048 has 1024"):
        import_files(ALL, accelerator=GPU, model=tiny_2048.model_copy(update={"hidden_size": 1024}))


def changed(tmp_path: Path, file: str, *replacements: tuple[str, str]) -> Path:
    text = (DATA / file).read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / Path(file).name
    path.write_text(text, encoding="utf-8")
    return path


def test_recomputation_is_read(tmp_path: Path, import_files: Importer, tiny_2048: Model) -> None:
    line = "recompute_granularity ".ljust(49, ".")
    path = changed(tmp_path, ALL, (f"  {line} None", f"  {line} full"))
    profile = import_files(path, accelerator=GPU, model=tiny_2048).profile
    assert {key.recompute for key in profile.layers} == {"full"}
    (row,) = profile.layers.values()
    assert row.recomputed_bytes > row.activation_bytes > 0


def test_bytes_that_are_no_text_do_not_spoil_a_log(tmp_path: Path, import_files: Importer, tiny_2048: Model) -> None:
    path = tmp_path / "training.log"
    path.write_bytes(b"\xff\xfe progress 10%\r50%\n" + (DATA / ALL).read_bytes() + b"\x80\n")
    imported = import_files(path, accelerator=GPU, model=tiny_2048)
    assert imported.profile == import_files(ALL, accelerator=GPU, model=tiny_2048).profile


def test_an_absurd_sequence_length_is_refused(tmp_path: Path, import_files: Importer, tiny_2048: Model) -> None:
    line = "seq_length ".ljust(49, ".")
    path = changed(tmp_path, ALL, (f"  {line} 1024", f"  {line} {'9' * 8}"))
    with pytest.raises(InputError, match="arguments: 99999999 is no sequence length: 1 to 10,000,000 is accepted"):
        import_files(path, accelerator=GPU, model=tiny_2048)


def test_an_uneven_split_is_read(tmp_path: Path, import_files: Importer, tiny_2048: Model) -> None:
    """The same stages, called 11 layers with 3 on the last stage, make a layer of it what it takes."""
    last = "decoder_last_pipeline_num_layers ".ljust(49, ".")
    layers = "num_layers ".ljust(49, ".")
    path = changed(tmp_path, ALL, (f"  {last} None", f"  {last} 5"), (f"  {layers} 8", f"  {layers} 11"))
    with pytest.raises(InputError, match=r"times make no sense: .*head -"):
        import_files(path, accelerator=GPU, model=tiny_2048)


def test_a_log_without_arguments_needs_options(tmp_path: Path, import_files: Importer, tiny_2048: Model) -> None:
    text = (DATA / EIGHT).read_text(encoding="utf-8")
    paths = []
    for number, source in enumerate((EIGHT, FOUR)):
        text = (DATA / source).read_text(encoding="utf-8")
        path = tmp_path / f"{number}.log"
        path.write_text(text.split("end of arguments", 1)[1], encoding="utf-8")
        paths.append(path)
    with pytest.raises(InputError) as error:
        import_files(paths[0], accelerator=GPU, model=tiny_2048)
    assert {mistake.field for mistake in error.value.mistakes} == {
        "argument tensor_model_parallel_size",
        "argument micro_batch_size",
        "arguments",
    }
    options: dict[str, Any] = {"tp": 2, "micro_batch_sizes": (2,), "num_micro_batches": 8, "seq_length": 1024}
    with pytest.raises(InputError, match="these stages can't tell a layer from embedding and head"):
        import_files(paths[0], accelerator=GPU, model=tiny_2048, **options)


@pytest.mark.parametrize(
    ("file", "replacements", "message"),
    [
        (ALL, [("times across ranks (ms):", "(min, max) time across ranks (ms):")], "have no forward-compute"),
        (FOUR, [("forward-compute", "forward-only")], "its timer blocks have no forward-compute and backward-compute"),
        (
            FOUR,
            [
                (
                    "pipeline_model_parallel_size .................... 1",
                    "pipeline_model_parallel_size .................... 2",
                )
            ],
            "gives times over all 2 stages together: train with --timing-log-option all",
        ),
        (
            ALL,
            [
                (
                    "pipeline_model_parallel_layout .................. None",
                    "pipeline_model_parallel_layout .................. Et|t",
                )
            ],
            "uneven layouts can't be read",
        ),
        (
            ALL,
            [
                (
                    "num_layers ...................................... 8",
                    "num_layers ...................................... 7",
                )
            ],
            "7 layers don't share out evenly over 4 stages",
        ),
        (
            MAX,
            [("-compute ................................: ", "-compute ................................: -")],
            "is out of range",
        ),
    ],
)
def test_logs_that_can_not_be_used_say_why(
    file: str,
    replacements: list[tuple[str, str]],
    message: str,
    tmp_path: Path,
    import_files: Importer,
    tiny_2048: Model,
) -> None:
    path = changed(tmp_path, file, *replacements)
    with pytest.raises(InputError, match=message):
        import_files(path, accelerator=GPU, model=tiny_2048, format_name="megatron")


def test_one_configuration_on_one_stage_is_not_enough(import_files: Importer, tiny_2048: Model) -> None:
    with pytest.raises(
        InputError, match="give a second log with another number of layers, or one with 3 or more pipeline"
    ):
        import_files(MAX, accelerator=GPU, model=tiny_2048)


def stage(embedding: bool, layers: int, head: bool) -> Observation:
    return Observation(embedding, head, layers, 2.0 * embedding + 3.0 * layers + 5.0 * head, 1.0)


def test_stage_times_are_solved_exactly_where_they_can_be() -> None:
    solved = solved_times(
        [stage(True, 4, False), stage(False, 4, False), stage(False, 3, True)], "forward", Place("f"), 0.0
    )
    assert (solved.embedding, solved.layer, solved.head) == pytest.approx((2.0, 3.0, 5.0))
    assert solved.notes == solved.warnings == ()


def test_embedding_and_head_are_split_by_the_share_where_stages_do_not_tell() -> None:
    stages = [stage(True, 4, True), stage(True, 8, True)]
    solved = solved_times(stages, "forward", Place("f"), 0.25)
    assert (solved.embedding, solved.layer, solved.head) == pytest.approx((1.75, 3.0, 5.25))
    assert solved.notes == ("embedding = 25% of embedding and head together",)


def test_stages_that_contradict_each_other_are_reported() -> None:
    stages = [
        stage(True, 4, False),
        stage(False, 4, False),
        stage(False, 3, True),
        Observation(False, False, 4, 14.0, 1.0),
    ]
    assert solved_times(stages, "forward", Place("f"), 0.0).warnings == (
        "forward: a stage is 8% off what the layers explain",
    )
