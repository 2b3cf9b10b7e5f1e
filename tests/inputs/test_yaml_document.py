from __future__ import annotations

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.inputs import yaml_document
from poseidon.inputs.limits import MAX_VALUES
from poseidon.inputs.yaml_document import parse_yaml
from poseidon.inputs.yaml_scalar import plain_scalar


def parsed(text: str) -> object:
    value, mistakes = parse_yaml(text, "f.yaml")
    assert mistakes == []
    return value


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1_000", 1000),
        ("010", 10),
        ("0x10", 16),
        ("0o10", 8),
        ("-.5", -0.5),
        ("+3", 3),
        ("no", "no"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("true", True),
        ("Null", None),
        ("~", None),
        ("", None),
        ("1f1b", "1f1b"),
    ],
)
def test_plain_scalars_follow_the_yaml_1_2_core_schema(text: str, value: object) -> None:
    result = plain_scalar(text)
    assert result == value
    assert type(result) is type(value)


def test_quoted_scalars_are_text() -> None:
    assert parsed("a: '1'\nb: \"true\"\nc: |\n  2\n") == {"a": "1", "b": "true", "c": "2\n"}


def test_keys_are_text_even_when_they_look_like_numbers() -> None:
    assert parsed("4090: {1.0: x}\nyes: 1") == {"4090": {"1.0": "x"}, "yes": 1}


def test_anchors_and_aliases_repeat_values() -> None:
    assert parsed("a: &n [1, {b: 2}]\nc: *n\nd: &s text\ne: *s") == {
        "a": [1, {"b": 2}],
        "c": [1, {"b": 2}],
        "d": "text",
        "e": "text",
    }


def test_both_yaml_parsers_give_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x {b: [1, 2.5, 'q', \"w\"]}\nc: *x\n? d\n: |\n  long\n  text\n'e f': !!str 3\n"
    fast = parsed(text)
    monkeypatch.setattr(yaml_document, "_LOADER", yaml.SafeLoader)
    assert (
        parsed(text)
        == fast
        == {"a": {"b": [1, 2.5, "q", "w"]}, "c": {"b": [1, 2.5, "q", "w"]}}
        | {
            "d": "long\ntext\n",
            "e f": "3",
        }
    )


@pytest.mark.parametrize("text", ["a: &x [*x]", "a: &x {b: {c: *x}}", "&x a: &y\n  - 1\n  - [*y]"])
def test_cyclic_anchors_are_refused(text: str) -> None:
    assert "refers to the value that contains it (a cycle)" in refusal(text)


def test_an_alias_bomb_is_refused_without_expanding_it() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 60):
        references = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{references}]")
    assert f"has more than {MAX_VALUES:,} values" in refusal("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *b", "*b refers to no anchor"),
        ("a: 1\n---\nb: 2", "starts a second document"),
        ("a: !!python/object/apply:os.system [x]", "the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        ("a: !custom x", "the tag '!custom' is not accepted"),
        ("[1, 2]: x", "a key must be text"),
        ("? {a: 1}\n: x", "a key must be text"),
        ("a: &x 1\n*x : 2", "a key must be text"),
        ("<<: {a: 1}", "merge keys (<<) are not supported"),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, message: str) -> None:
    assert message in refusal(text)


def test_all_repeated_keys_and_infinite_numbers_are_reported() -> None:
    _, mistakes = parse_yaml("a: .inf\nb: {c: 1, c: 2}\nd: [1e999]", "f.yaml")
    assert [mistake.field for mistake in mistakes] == ["a", "b.c", "d[0]"]
