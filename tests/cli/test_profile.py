from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.profile import load_profile, read_profile

ROOT = Path(__file__).parents[2]
MODEL = {
    "name": "tiny",
    "num_layers": 4,
    "hidden_size": 64,
    "ffn_hidden_size": 96,
    "num_attention_heads": 4,
    "num_kv_heads": 2,
    "vocab_size": 512,
}
SEQ_LENGTH = 64
CLUSTER = {
    "name": "cpus",
    "accelerators": {"cpu-a": {"peak_tflops": 0.1, "memory_gb": 1.0}},
    "nodes": [{"accelerator": "cpu-a", "count": 2, "devices": 2}],
    "links": {
        "intra_node": {"bandwidth_gbps": 10.0, "latency_us": 100.0},
        "inter_node": {"bandwidth_gbps": 1.0, "latency_us": 500.0},
    },
}
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """A small job on the CPU, which is measured roughly and quickly."""
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(MODEL))
    job = ["profile", "--model", tmp_path / "tiny.yaml", "--accelerator", "cpu-a", "--seq-length", SEQ_LENGTH]
    effort = ["--warmups", 1, "--fewest-samples", 2, "--most-samples", 3, "--micro-batch-size", 1]
    return [*map(str, [*job, *effort, "--device", "cpu", "--out", tmp_path / "out.json"])]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "poseidon.cli", *map(str, arguments)]


def torchrun(num_processes: int, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(num_processes)]
    return subprocess.run(
        [*launch, "-m", "poseidon.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=ONE_THREAD,
        timeout=300,
        check=False,
    )


def experiment(folder: Path, profile: Path, **training: Any) -> Path:
    parts = {
        "model": MODEL,
        "cluster": CLUSTER,
        "training": {"global_batch_size": 8, "seq_length": SEQ_LENGTH, "micro_batch_sizes": [1], **training},
        "profile": str(profile),
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(parts))
    return path


def test_without_torch_one_line_says_what_to_install(
    cli: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = cli(*arguments)
    assert ran.status == 2
    [line] = ran.mistakes
    assert "needs PyTorch: pip install 'poseidon-planner[profile]'" in line


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "missing --model, --accelerator, --seq-length, --out (or give EXPERIMENT.yaml)"),
        (["a.yaml"], "missing --accelerator, --out"),
        (["a.yaml", "--model", "b.yaml"], "either EXPERIMENT or --model"),
        (["a.json", "b.json"], "several files need --merge"),
        (["--merge", "a.json", "--out", "b.json"], "--merge needs at least two files and --out"),
        (["--merge", "a.json", "b.json"], "--merge needs at least two files and --out"),
        (["--device", "tpu"], "'auto', 'cpu', 'cuda', 'npu'"),
    ],
)
def test_bad_usage(cli: Any, given: list[str], message: str) -> None:
    ran = cli("profile", *given)
    assert ran.status == 2
    [line] = ran.mistakes
    assert message in line


TRIES = 5


@pytest.mark.torch
class TestMeasured:
    """With PyTorch, on this machine's CPU."""

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")

    def test_a_measured_file_says_how_and_its_search_runs(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        ran = cli(*arguments, "--recompute", "auto", "--json")
        assert ran.status == 0, ran.err
        assert ran.data == json.loads(out.read_text())
        [taken] = ran.data["taken"]
        assert (taken["accelerator"], taken["device"], taken["processes"]) == ("cpu-a", "cpu", 1)
        assert "cpu-a on " in ran.data["source"]
        rows = ran.data["layers"] + ran.data["embedding"] + ran.data["head"]
        assert len(rows) == 3 + 1 + 1
        assert all(2 <= row["measured"]["samples"] <= 3 for row in rows)

        path = experiment(tmp_path, out, recompute="auto")
        searched = cli("search", path, "--fixed-tp", "1", "--json", "--out", tmp_path / "plan")
        assert searched.status == 0, searched.err
        [*stages] = searched.data["stages"]
        row = next(row for row in ran.data["layers"] if row["recompute"] == searched.data["recompute"])
        stage = stages[0]
        at_ends = ran.data["embedding"][0]["forward_ms"] + (len(stages) == 1) * ran.data["head"][0]["forward_ms"]
        assert stage["forward_ms"] == pytest.approx(stage["layers"] * row["forward_ms"] + at_ends)
        assert cli("verify", tmp_path / "plan" / "plan.json").status == 0

    def test_an_experiment_says_what_is_needed(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        path = experiment(tmp_path, out, recompute="full", precision="fp16", sequence_parallel=False)
        effort = arguments[arguments.index("--warmups") : arguments.index("--micro-batch-size")]
        rest = [*effort, "--device", "cpu", "--out", str(out), "--accelerator"]
        ran = cli("profile", path, *rest, "cpu-b")
        assert ran.status == 2
        assert "cluster: has no accelerator 'cpu-b'; it has cpu-a" in ran.err
        alone = cli("profile", path, *rest, "cpu-a")
        assert alone.status == 2
        assert "TP above 1 needs several processes" in alone.err

        ran = torchrun(2, ["profile", str(path), *rest, "cpu-a", "--json", "-q"])
        assert ran.returncode == 0, ran.stderr[-4000:]
        data = json.loads(ran.stdout)
        assert {(row["tp"], row["micro_batch_size"], row["recompute"]) for row in data["layers"]} == {
            (1, 1, "full"),
            (2, 1, "full"),
        }
        assert (data["precision"], data["sequence_parallel"]) == ("fp16", False)
        assert cli("search", path, "-q").status == 0

    def test_a_search_of_what_was_not_measured_says_so(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        assert cli(*arguments).status == 0
        ran = cli("search", experiment(tmp_path, tmp_path / "out.json", micro_batch_sizes=[1, 2]))
        assert ran.status == 2
        assert "tp 2, micro_batch_size 2" in ran.err

    def test_more_work_takes_longer_and_keeps_in_proportion(
        self, cli: Any, arguments: list[str], tmp_path: Path
    ) -> None:
        for _ in range(TRIES):  # other processes of a full machine can take longer than all that is measured here
            ran = cli(*arguments, "--micro-batch-size", "16", "--json", "-q", "--fresh")
            small, large = ran.data["layers"]
            takes_longer = [large[f"{kind}_ms"] > small[f"{kind}_ms"] for kind in ("forward", "backward")]
            if all(takes_longer):
                break
        assert takes_longer == [True, True]
        assert large["micro_batch_size"] == 16
        assert large["activation_bytes"] == 16 * small["activation_bytes"]
        assert large["weight_bytes"] == small["weight_bytes"]

    def test_a_rerun_measures_only_what_is_missing(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        out, journal = tmp_path / "out.json", tmp_path / "out.json.journal"
        first = cli(*arguments, "--json")
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:-1]))
        out.unlink()
        again = cli(*arguments, "--json")
        assert [line for line in again.mistakes if line.startswith("[")] == [
            line for line in again.mistakes if line.startswith("[3/3] head")
        ]
        assert journal.read_text().startswith("".join(lines[:-1]))
        for table in ("layers", "embedding"):
            assert again.data[table] == first.data[table]
        assert again.data["head"] != first.data["head"]

        more = cli(*arguments, "--micro-batch-size", "2", "--json")
        assert more.data["layers"][0] == first.data["layers"][0]
        assert len(more.data["layers"]) == 2

        fresh = cli(*arguments, "--fresh", "--json")
        assert fresh.data["layers"] != first.data["layers"]

    def test_a_journal_of_another_job_is_refused(self, cli: Any, arguments: list[str]) -> None:
        assert cli(*arguments, "-q").status == 0
        ran = cli(*arguments, "--seq-length", "32")
        assert ran.status == 2
        [line] = ran.mistakes
        assert "seq_length: was begun with 64, not 32" in line

    def test_an_interruption_keeps_what_is_measured(self, arguments: list[str], tmp_path: Path) -> None:
        journal = tmp_path / "out.json.journal"
        sizes = [option for size in range(2, 40) for option in ("--micro-batch-size", str(size))]
        running = subprocess.Popen(
            command(*arguments, *sizes), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ONE_THREAD
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and (not journal.exists() or journal.read_text().count("\n") < 3):
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 130
        assert out == ""
        assert "out.json.journal keeps what is measured; the same command goes on from there" in err
        assert "Traceback" not in err
        assert not (tmp_path / "out.json").exists()
        kept = journal.read_text()
        assert 3 <= kept.count("\n") < 3 * 39

        ran = subprocess.run(command(*arguments, "-q"), env=ONE_THREAD, timeout=120, check=False)
        assert ran.returncode == 0
        assert journal.read_text().startswith(kept)

    @pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads how much memory the process has mapped")
    def test_what_does_not_fit_is_left_out_and_named(self, arguments: list[str], tmp_path: Path) -> None:
        (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(MODEL | {"vocab_size": 9_000_000}))
        code = (
            "import resource, torch, poseidon.cli\n"
            "mapped = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 10**9\n"
            "resource.setrlimit(resource.RLIMIT_AS, (mapped, mapped))\n"
            "poseidon.cli.main()\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            env=ONE_THREAD,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert "embedding, tp 1, micro-batch 1: does not fit: out of memory, tried to allocate" in ran.stderr
        assert "Not measured: head, tp 1, micro-batch 1: out of memory" in ran.stdout
        profile = read_profile(tmp_path / "out.json")
        assert len(profile.layers) == 1
        assert profile.head == {}

    def test_two_processes_measure_what_they_exchange(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        degrees = [option for tp in (1, 2, 4) for option in ("--tp", str(tp))]
        ran = torchrun(2, [*arguments, *degrees, "--message-bytes", "4096", "--message-bytes", "65536", "--json"])
        assert ran.returncode == 0, ran.stderr[-4000:]
        out = tmp_path / "out.json"
        data = json.loads(out.read_text())
        assert json.loads(ran.stdout) == data  # one process writes
        how = {row["tp"]: row["measured"]["tp_communication"] for row in data["layers"]}
        assert how == {1: "none", 2: "measured", 4: "ring"}
        weights = {row["tp"]: row["weight_bytes"] for row in data["head"]}
        assert weights[1] > weights[2] > weights[4]
        assert [(row["from"], row["to"], row["bytes"]) for row in data["transfers"]] == [
            ("cpu-a", "cpu-a", 4096),
            ("cpu-a", "cpu-a", 65536),
        ]
        assert [(row["tp"], row["dp"], row["bytes"]) for row in data["all_reduce"]] == [(1, 2, 4096), (1, 2, 65536)]
        assert all(row["ms"] > 0 for row in data["transfers"] + data["all_reduce"])
        assert data["sequence_parallel"] is True

        path = experiment(tmp_path, out)
        searched = cli("search", path, "--out", tmp_path / "plan", "--json")
        assert searched.status == 0, searched.err
        assert searched.data["status"] == "optimal"
        assert cli("verify", tmp_path / "plan" / "plan.json").status == 0
        refused = cli("search", experiment(tmp_path, out, sequence_parallel=False))
        assert refused.status == 2
        assert "sequence_parallel: is True, but the experiment trains with False" in refused.err

    def test_bad_input_under_torchrun_is_said_once(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        assert cli(*arguments, "-q").status == 0
        ran = torchrun(2, arguments)
        assert ran.returncode != 0
        assert ran.stderr.count("out.json.journal: processes: was begun with 1, not 2") == 1
        ran = torchrun(2, [*arguments, "--tp", "3"])
        assert ran.stderr.count("TP 3 does not divide the model's 4 attention heads") == 1

    def test_a_target_that_cannot_be_written_is_refused_first(
        self, cli: Any, arguments: list[str], tmp_path: Path
    ) -> None:
        ran = cli(*arguments, "--out", tmp_path)
        assert ran.status == 2
        assert "is a directory" in ran.err

    def test_files_of_two_accelerators_are_merged(self, cli: Any, arguments: list[str], tmp_path: Path) -> None:
        other = [*arguments, "--accelerator", "cpu-b", "--out", str(tmp_path / "b.json")]
        assert cli(*arguments, "-q").status == cli(*other, "-q").status == 0
        merged = tmp_path / "all.json"
        ran = cli("profile", "--merge", tmp_path / "out.json", tmp_path / "b.json", "--out", merged)
        assert ran.status == 0, ran.err
        assert "2 rows of layers on cpu-a, cpu-b" in ran.out
        assert {key.at.accelerator for key in read_profile(merged).layers} == {"cpu-a", "cpu-b"}


def test_a_profile_without_a_word_on_sequence_parallelism_is_taken(tmp_path: Path, cli: Any) -> None:
    """Imported files don't say it."""
    from poseidon.inputs import load_experiment
    from poseidon.profile import analytic_profile, write_profile

    analytic = load_experiment(experiment(tmp_path, Path("analytic")))
    write_profile(analytic_profile(analytic), tmp_path / "file.json")
    path = experiment(tmp_path, tmp_path / "file.json", sequence_parallel=False)
    assert load_profile(load_experiment(path)).sequence_parallel is None
    assert cli("search", path, "-q").status == 0
