from __future__ import annotations

import json

import pytest

from poseidon.output.json_text import json_line
from poseidon.output.streams import harmless


@pytest.mark.parametrize(
    "text",
    ["plain", "two\nlines\tand a tab", "机器 é █▏ ±", "\x1b[1mbold\x1b[0m", "\x1b[38;5;2mgreen\x1b[m", "a\u00a0b"],
)
def test_what_people_read_is_left_alone(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "\x1b]0;title\x07",
            "\x1b[2J",
            "\x1b[10A",
            "\x1bc",
            "\x1b]8;;file:///x\x1b\\x",
            "\x9b2J",
            "\r",
            "\x08",
            "\x7f",
        ),
        *("\u202e", "\u2066", "\u2028"),
    ],
    ids=ascii,
)
def test_what_a_terminal_would_obey_is_spelt_out(text: str) -> None:
    assert harmless(f"a{text}b").isprintable()


def test_a_result_stays_the_same_data() -> None:
    data = {"name": "\x9b\u202e\x7f\u2028\x85 \x1b[0m", "number": 1.5}
    assert json.loads(harmless(json_line(data))) == data
