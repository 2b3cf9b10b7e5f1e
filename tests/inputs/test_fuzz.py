"""Whatever is done to the shipped files, a person sees lines of text and never a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poseidon.errors import InputError
from poseidon.inputs.cluster_file import load_cluster
from poseidon.inputs.experiment import experiment_from_resolved, load_experiment
from poseidon.inputs.model_file import load_model

CONFIGS = Path(__file__).parents[2] / "configs"
EXPERIMENTS = [CONFIGS / "experiments" / f"{name}.yaml" for name in ("setting4", "setting5", "quickstart")]
TEXTS = [path.read_text() for folder in ("clusters", "experiments", "models") for path in (CONFIGS / folder).iterdir()]
RESOLVED = [load_experiment(path).resolved() for path in EXPERIMENTS]
RESOLVED.append({**RESOLVED[0], "model": load_model(CONFIGS / "models" / "deepseek-v3.yaml").model_dump(mode="json")})

QUICK = settings(
    max_examples=150, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
SNIPPETS = [
    "&a ",
    "*a",
    "<<: ",
    "[",
    "]",
    "{",
    "}",
    ": ",
    "- ",
    "1e999",
    ".nan",
    "'",
    '"',
    "\t",
    "\0",
    "!!int ",
    "%",
    "---\n",
]
NASTY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 10**30, -(10**400), 1e300, -1e-300, float("inf"), float("nan"), 2**63, 1e-9]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["\ud800", "\x00", "x" * 10_000, "../" * 50, "1f1b", "analytic"]),
    st.lists(st.one_of(st.integers(), st.text(max_size=2), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def assert_only_lines(error: InputError) -> None:
    assert error.mistakes
    for mistake in error.mistakes:
        assert str(mistake).isprintable()
        assert len(str(mistake)) < 1_000


@st.composite
def changed_texts(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 5, 40])))
        text = text[:start] + draw(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=3))) + text[end:]
    return text


@st.composite
def changed_values(draw: st.DrawFn) -> dict[str, Any]:
    data = copy.deepcopy(draw(st.sampled_from(RESOLVED)))
    for _ in range(draw(st.integers(1, 4))):
        container: Any = data
        while True:
            keys = list(container) if isinstance(container, dict) else list(range(len(container)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            child = container[key]
            if isinstance(child, dict | list) and child and draw(st.integers(0, 5)):
                container = child
                continue
            container[key] = draw(NASTY)
            if isinstance(container, dict) and draw(st.integers(0, 3)) == 0:
                container[draw(st.text(max_size=4))] = container.pop(key)
            break
    return data


@QUICK
@given(text=changed_texts())
@pytest.mark.parametrize("load", [load_experiment, load_cluster, load_model])
def test_changed_files_load_or_are_refused_in_lines(
    load: Any, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load(path)
    except InputError as error:
        assert_only_lines(error)


@QUICK
@given(data=changed_values())
def test_changed_values_load_or_are_refused_in_lines(data: dict[str, Any]) -> None:
    try:
        experiment = experiment_from_resolved(data, "plan.json")
    except InputError as error:
        assert_only_lines(error)
    else:
        assert experiment_from_resolved(json.loads(json.dumps(experiment.resolved()))) == experiment
        assert experiment.model.num_parameters > 0
        for group in experiment.cluster.nodes:
            assert experiment.cluster.link_between(experiment.cluster.nodes[0], group).bandwidth_gbps > 0


@QUICK
@given(data=changed_values())
def test_changed_json_files_load_or_are_refused_in_lines(
    data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps({key: value for key, value in data.items() if key != "files"}))
    try:
        load_experiment(path)
    except InputError as error:
        assert_only_lines(error)


@QUICK
@given(
    data=st.dictionaries(
        st.sampled_from(["hidden_size", "vocab_size", "n_embd", "num_hidden_layers", "moe_intermediate_size", "x"]),
        NASTY,
    ),
    model_type=st.one_of(st.sampled_from(["llama", "qwen3_moe", "deepseek_v3", "gpt2", "opt"]), NASTY),
)
def test_any_hugging_face_configuration_loads_or_is_refused_in_lines(
    data: dict[str, Any], model_type: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_text(json.dumps({**data, "model_type": model_type}))
    try:
        load_model(path)
    except InputError as error:
        assert_only_lines(error)
