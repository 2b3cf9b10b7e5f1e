from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poseidon.errors import InputError
from poseidon.launch.arguments import Arguments, parsed
from poseidon.launch.flag_table import framework_flags
from poseidon.launch.plan_flags import Removal
from poseidon.launch.rewrite import rewritten
from tests.output.export.megatron_parser import Parser, megatron_parser


def arguments(text: str) -> Arguments:
    return parsed(text.split(), framework_flags())


def test_words_come_back_as_they_were() -> None:
    text = "--bf16 --data-path 0.5 a 0.5 b --lr=1e-4 --null-tokenizer-pad-id -1 --new-switch x y -- rest"
    assert " ".join(arguments(text).words) == text


def test_flags_take_as_many_values_as_the_framework_gives_them() -> None:
    read = arguments("--bf16 stray --rampup-batch-size 16 16 1000 --spec a b --lr 1 --unknown 1 -2 --swiglu")
    assert [(item.name, item.values) for item in read] == [
        ("--bf16", ()),
        ("", ()),
        ("--rampup-batch-size", ("16", "16", "1000")),
        ("--spec", ("a", "b")),
        ("--lr", ("1",)),
        ("--unknown", ("1", "-2")),
        ("--swiglu", ()),
    ]


def test_the_last_of_a_repeated_flag_counts_however_it_is_spelt() -> None:
    read = arguments("--num-layers 4 --num-layers=8 --save-interval 1 --persistent-save-interval 2")
    assert read.count("--num-layers") == 8
    assert read.text("--save-interval") == "2"


@pytest.mark.parametrize("text", ["--num-layers", "--num-layers --bf16", "--rampup-batch-size 1 2"])
def test_a_flag_without_its_values_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"needs (a|3) value"):
        arguments(text)


@pytest.mark.parametrize("value", ["x", "1.5", "-3", "", "1e3", "٣"])
def test_a_number_is_a_number(value: str) -> None:
    with pytest.raises(InputError, match=r"--num-layers: .* is not a whole number"):
        arguments(f"--num-layers={value}").count("--num-layers")


FLAGS = ("--bf16", "--num-layers 4", "--num-layers=5", "--data-path a b", "--lr 0.1", "--split 9,1", "--ours -1 x", "w")
REMOVED = ("--num-layers", "--split")
"""Flags that can be gone after the rewrite."""


@pytest.fixture(scope="module")
def parser() -> Parser:
    return megatron_parser()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(FLAGS), max_size=8), st.integers(1, 9))
@example(["w", "--data-path a b", "--num-layers 4", "w", "w", "--num-layers 4", "w"], 1)
@example(["--ours -1 x", "--split 9,1", "w"], 1)
def test_argparse_reads_the_same_after_a_rewrite(parser: Parser, flags: list[str], layers: int) -> None:
    """Whatever stands there: the wanted value is read, what was removed is gone, and all else is as before."""
    before = arguments(" ".join(flags))
    result = rewritten(before, [("--num-layers", str(layers)), ("--bf16",)], [Removal("--split", "why")])
    old, old_rest = parser.parse_known_args(list(before.words))
    new, new_rest = parser.parse_known_args(list(result.words))
    assert (new.num_layers, new.bf16, new.split) == (layers, True, None)
    assert (new.lr, new.data_path) == (old.lr, old.data_path)
    assert sorted(new_rest) == sorted(old_rest)  # a word that a flag would have taken comes before that flag
    assert [word for word in new_rest if word != "w"] == [word for word in old_rest if word != "w"]
    if not any(first.startswith(REMOVED) and second == "w" for first, second in pairwise(flags)):
        assert new_rest == old_rest
    assert sum(word.startswith("--num-layers") for word in result.words) == 1


def test_a_changed_flag_keeps_its_place_and_spelling() -> None:
    result = rewritten(
        arguments("--lr 1 --num-layers=4 --bf16 --num-layers=08 --split 1 --swiglu"),
        [("--num-layers", "6"), ("--sequence-parallel",)],
        [Removal("--split", "why"), Removal("--sequence-parallel", "not where it is wanted")],
    )
    assert result.words == ("--lr", "1", "--bf16", "--num-layers=6", "--swiglu", "--sequence-parallel")
    assert [(c.kind, c.before, c.after) for c in result.changes] == [
        ("removed", "--num-layers=4", ""),
        ("changed", "--num-layers=08", "--num-layers=6"),
        ("removed", "--split 1", ""),
        ("added", "", "--sequence-parallel"),
    ]
    assert result.num_kept == 3


def test_a_value_that_is_right_already_is_not_touched() -> None:
    result = rewritten(arguments("--num-layers +08 --bf16"), [("--num-layers", "8"), ("--bf16",)], [])
    assert (result.words, result.changes, result.num_kept) == (("--num-layers", "+08", "--bf16"), (), 2)
