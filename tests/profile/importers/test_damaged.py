"""Damaged files: whatever is wrong with them, the answer is a refusal that names the file, or a sound profile."""

from __future__ import annotations

import math
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.profile.file import profile_from_json, profile_to_json
from poseidon.profile.importers import ImportOptions, import_profile
from poseidon.profile.profile import Profile

from .conftest import DATA, MODELS, TINY_2048

ROUNDS = 60
TINY = Model.model_validate(TINY_2048)
GPT: dict[str, Any] = {"accelerator": "X", "seq_length": 2048}
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "metis": (["metis/mbs1_tmp1.json"], {"accelerator": "X", "element_bytes": 4, "seq_length": 2048}),
    "sailor": (
        ["sailor/OPT-350_A100-40.json", "sailor/llm_info.json", "sailor/intra_node_bandwidths.json"],
        {"seq_length": 2048},
    ),
    "galvatron": (
        [
            "galvatron/computation_profiling_bf16_llama2-7b_all.json",
            "galvatron/memory_profiling_bf16_llama2-7b_all.json",
            "galvatron/allreduce_bandwidth_2nodes_8gpus_per_node.json",
            "galvatron/p2p_bandwidth_2nodes_8gpus_per_node.json",
        ],
        {"accelerator": "X"},
    ),
    "galvatron static": (
        ["galvatron/sailor_compute_profile.json", "galvatron/sailor_memory_profile.json"],
        {"accelerator": "X", "seq_length": 2048, "micro_batch_sizes": (1, 2)},
    ),
    "aceso": (
        ["aceso/gpt_1_3B_mbs1_tp1_algo0.csv", "aceso/p2p_intra_node.csv", "aceso/prim_gpt_1_3B_all_reduce_2gpus.csv"],
        GPT,
    ),
    "megatron": (["megatron/minmax_4_layers.log", "megatron/minmax_8_layers.log"], {"accelerator": "X", "model": TINY}),
    "megatron all": (["megatron/all_4_stages.log"], {"accelerator": "X", "model": TINY}),
    "ascend": (
        ["ascend/ASCEND_PROFILER_OUTPUT/kernel_details.csv"],
        {"accelerator": "X", "tp": 2, "micro_batch_sizes": (1,), "seq_length": 2048, "model": TINY},
    ),
    "varuna": (["varuna/profile_1.json"], {"accelerator": "X", "element_bytes": 4, "seq_length": 2048}),
    "piper": (["piper/profile.json"], {"accelerator": "X", "element_bytes": 4, "seq_length": 2048}),
}
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
PUT_IN = (
    *(
        "NaN",
        "-1",
        "-0.5",
        "1e999",
        "Infinity",
        "null",
        "true",
        '"x"',
        "[]",
        "{}",
        "0",
        "1e300",
        "9" * 400,
        "",
        ",",
        "\0",
    ),
    *("1e-300", '"1"', "0x10", "１２", "²", "\ud7ff", "1.2.3", '{"1": 1}'),
)


def damaged(text: str, chance: random.Random) -> str:
    """Some damage: cut off, a number replaced, lines lost, doubled or swapped, characters lost."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            return text[: chance.randrange(len(text))]
        case 1 | 2:
            numbers = list(NUMBER.finditer(text))
            found = chance.choice(numbers)
            return text[: found.start()] + chance.choice(PUT_IN) + text[found.end() :]
        case 3:
            return "\n".join(lines[:at] + lines[at + 1 :])
        case 4:
            return "\n".join([*lines[: at + 1], *lines[at:]])
    start = chance.randrange(len(text))
    return text[:start] + text[start + chance.randrange(1, 40) :]


def assert_sound(profile: Profile) -> None:
    assert profile_from_json(profile_to_json(profile), "profile") == profile
    assert profile.layers
    rows = [*profile.layers.values(), *profile.embedding.values(), *profile.head.values()]
    for row in rows:
        values = (row.forward_ms, row.backward_ms, row.weight_bytes, row.activation_bytes)
        assert all(math.isfinite(value) and value >= 0 for value in values)
    for message in (*profile.transfers, *profile.all_reduce):
        assert math.isfinite(message.ms)
        assert message.ms >= 0


def outcome(paths: list[Path], options: ImportOptions, format_name: str | None) -> bool:
    """Whether the files are refused, with one line for each mistake; a profile that comes out is sound."""
    try:
        imported = import_profile(paths, options, format_name)
    except InputError as error:
        lines = [str(mistake) for mistake in error.mistakes]
        return bool(lines) and all(line.strip() and "\n" not in line for line in lines)
    assert_sound(imported.profile)
    return False


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("named", [True, False])
def test_damage_is_refused_or_harmless(name: str, named: bool, tmp_path: Path) -> None:
    files, options = CASES[name]
    refused = 0
    for round_number in range(ROUNDS):
        chance = random.Random(f"{name} {named} {round_number}")
        paths = [Path(shutil.copy(DATA / file, tmp_path)) for file in files]
        victim = chance.choice(paths)
        text = damaged(victim.read_text(encoding="utf-8"), chance)
        victim.write_text(text, encoding="utf-8", errors="surrogatepass")
        refused += outcome(paths, ImportOptions(**options), name.split()[0] if named else None)
    assert refused > 0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"[]", b"null", b"\xff\xfe\x00", b"a,b\n1", b'{"1": {}}', b'{"1": {"1": {}}}']
)
def test_files_of_something_else_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    files, options = CASES[name]
    path = tmp_path / Path(files[0]).name
    path.write_bytes(content)
    for format_name in (name.split()[0], None):
        with pytest.raises(InputError):
            import_profile([path], ImportOptions(**options), format_name)


def test_a_model_does_not_hide_damage(tmp_path: Path) -> None:
    """With a model most files need nothing else: times alone must still be right."""
    from poseidon.inputs.model_file import load_model

    model = load_model(MODELS / "opt-350.yaml")
    path = tmp_path / "OPT-350_A100-40.json"
    text = (DATA / "sailor" / "OPT-350_A100-40.json").read_text(encoding="utf-8")
    for bad in ("-0.1", "NaN", "1e999", '"soon"', "null", "[]"):
        path.write_text(text.replace("0.001908", bad, 1), encoding="utf-8")
        with pytest.raises(InputError, match="OPT-350_A100-40"):
            import_profile([path], ImportOptions(model=model, seq_length=2048))
