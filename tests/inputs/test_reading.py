from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.limits import MAX_BYTES, MAX_MISTAKES
from poseidon.inputs.reading import read_document

Write = Callable[[str, Any], Path]


def refusal(path: str | Path) -> str:
    """The one line that reading the file is refused with."""
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert len(caught.value.mistakes) == 1
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_yaml_file_is_read_with_the_hash_of_its_bytes(write: Write) -> None:
    path = write("a.yaml", b"a: 1\nb: [x, 2.5, true, null]\n")
    document = read_document(path)
    assert document.data == {"a": 1, "b": ["x", 2.5, True, None]}
    assert document.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_json_file_is_read_by_its_suffix(write: Write) -> None:
    tabs = '{\n\t"a": [1, 2.5, null],\n\t"b": {"c": "\\u00e9"}\n}'
    assert read_document(write("a.json", tabs)).data == {"a": [1, 2.5, None], "b": {"c": "é"}}


def test_a_byte_order_mark_is_accepted(write: Write) -> None:
    assert read_document(write("a.yaml", b"\xef\xbb\xbfa: 1\n")).data == {"a": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: no such file"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory" in refusal(tmp_path)


def test_the_folder_of_a_hugging_face_model_is_refused_with_a_hint(write: Write, tmp_path: Path) -> None:
    write("checkpoint/config.json", "{}")
    assert "did you mean the config.json in it?" in refusal(tmp_path / "checkpoint")


def test_a_large_file_is_refused_by_its_size_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    monkeypatch.setattr("builtins.open", lambda *_: pytest.fail("the file was opened"))
    assert refusal(path).endswith("is too large: 100 MB; at most 16 MB are accepted")


def test_a_file_of_exactly_the_largest_size_is_read(write: Write) -> None:
    content = b"a: " + b"x" * (MAX_BYTES - 3)
    assert len(read_document(write("large.yaml", content)).data["a"]) == MAX_BYTES - 3
    assert "is too large" in refusal(write("larger.yaml", content + b"x"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_instead_of_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "is not a regular file" in refusal(tmp_path / "pipe.yaml")


@pytest.mark.parametrize("name", ["a\0b.yaml", "x" * 5000 + ".yaml", "\udcff.yaml"])
def test_an_impossible_file_name_is_refused_in_printable_words(name: str) -> None:
    assert refusal(name).isprintable()


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (bytes(range(256)) * 4, "is not a text file: byte 128 is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is not valid"),
        (b"[1, 2]", "does not hold a mapping"),
        (b"3", "does not hold a mapping"),
        (b'{"a": [1, 2}', "is not valid"),
    ],
)
def test_what_is_no_mapping_is_refused(write: Write, name: str, content: bytes, message: str) -> None:
    assert message in refusal(write(name, content))


def test_invalid_yaml_is_refused_with_line_and_column(write: Write) -> None:
    line = refusal(write("a.yaml", "model: [1, 2\ntraining: }\n"))
    assert "is not valid YAML: line 2, column 9" in line


def test_invalid_json_is_refused_with_line_and_column(write: Write) -> None:
    assert "is not valid JSON: line 2, column 7" in refusal(write("a.json", '{"a": 1,\n "b": }'))


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
@pytest.mark.parametrize("opening", ['{"a": ', "["])
def test_deep_nesting_is_refused(write: Write, name: str, opening: str) -> None:
    line = refusal(write(name, '{"x": ' + opening * 200_000))
    assert "nest" in line or "not valid JSON" in line


def test_closed_deep_nesting_is_refused(write: Write) -> None:
    for name in ("a.yaml", "a.json"):
        assert "is nested too deeply: at most 100 levels" in refusal(
            write(name, '{"x": ' + "[" * 120 + "]" * 120 + "}")
        )


@pytest.mark.parametrize("number", ["1e400", "-1e400", ".inf", "-.Inf", ".nan", "9" * 5000])
def test_infinite_numbers_in_yaml_are_refused_where_they_stand(write: Write, number: str) -> None:
    line = refusal(write("a.yaml", f"a:\n  - 1\n  - b: {number}\n"))
    assert ": a[1].b: line 3: " in line
    assert line.endswith("is not a finite number")


@pytest.mark.parametrize("number", ["1e400", "Infinity", "-Infinity", "NaN"])
def test_infinite_numbers_in_json_are_refused_where_they_stand(write: Write, number: str) -> None:
    assert refusal(write("a.json", f'{{"a": [1, {{"b": {number}}}]}}')).endswith(": a[1].b: is not a finite number")


def test_a_whole_number_of_thousands_of_digits_in_json_is_refused(write: Write) -> None:
    assert "thousands of digits" in refusal(write("a.json", f'{{"a": {"9" * 5000}}}'))


def test_repeated_keys_are_refused(write: Write) -> None:
    yaml_line = refusal(write("a.yaml", "a:\n  b: 1\n  c: 2\n  b: 3\n"))
    assert yaml_line.endswith("a.b: line 4: the key is given twice (first in line 2)")
    assert refusal(write("a.json", '{"a": {"b": 1, "b": 2}}')).endswith("key 'b' is given twice")


def test_a_json_file_of_endless_values_is_refused(write: Write) -> None:
    content = '{"a": [' + "[]," * 500_000 + "[]]}"
    assert refusal(write("a.json", content)).endswith(": has more than 500,000 values")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", "a: 1\n" * 1000),
        ("b.yaml", "a: [" + ".inf," * 1000 + "]"),
        ("a.json", '{"a": [' + "NaN," * 1000 + "1]}"),
    ],
)
def test_endless_mistakes_are_cut_short(write: Write, name: str, content: str) -> None:
    with pytest.raises(InputError) as caught:
        read_document(write(name, content))
    assert len(caught.value.mistakes) == MAX_MISTAKES + 1
    assert caught.value.mistakes[-1].message == "and more mistakes"
