from __future__ import annotations

import json

import pytest

from poseidon.output.json_text import json_document, json_line


def test_a_document_has_a_line_for_each_key_and_entry() -> None:
    data = {"a": 1, "stages": [{"x": 1.5}, {"x": None}], "empty": [], "text": "µ"}
    text = json_document(data)
    assert json.loads(text) == data
    assert text.splitlines() == [
        "{",
        ' "a": 1,',
        ' "stages": [',
        '  {"x": 1.5},',
        '  {"x": null}',
        " ],",
        ' "empty": [],',
        ' "text": "µ"',
        "}",
    ]


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_line({"x": number})
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_document({"x": number})
