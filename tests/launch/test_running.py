"""Scripts under `poseidon launch`, with a small program in place of torchrun: what starts, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launch.conftest import write_program
from tests.processes import wait_until

ROOT = Path(__file__).parents[2]
SLOW_MACHINE_S = 300

LAUNCHER = """#!{python}
import json, os, signal, sys, time

def stop(number, frame):
    with open(os.environ["LOG"] + ".signal", "w") as log:
        log.write(signal.Signals(number).name)
    sys.exit(9)

signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
call = {{"argv": sys.argv, "path": os.environ["PATH"], "names": sorted(os.environ),
        "connections": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS")}}
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps(call) + "\\n")
print("training")
if "--wait" in sys.argv:
    time.sleep(60)
sys.exit(int(os.environ.get("STATUS", "0")))
"""
MODEL = (
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --max-position-embeddings 512 "
    "--micro-batch-size 1 --global-batch-size 32 --bf16 --vocab-size 1000 --tensor-model-parallel-size 8"
)


class Desk:
    """Where a user works: a directory, a launcher on the PATH, a cluster file."""

    def __init__(self, directory: Path, cluster: Path) -> None:
        self.directory, self.cluster, self.log = directory, cluster, directory / "log"
        write_program(directory / "bin" / "torchrun", LAUNCHER.format(python=sys.executable))
        (directory / "tmp").mkdir()
        self.environment = {
            "PATH": f"{directory / 'bin'}:{Path(sys.executable).parent}:{os.defpath}",
            "PYTHONPATH": str(ROOT),
            "LOG": str(self.log),
            "HOME": str(directory),
            "TMPDIR": str(directory / "tmp"),
            "XDG_CACHE_HOME": str(directory / "cache"),
        }

    def command(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        launch = [sys.executable, "-m", "poseidon.cli", "launch", "--cluster", str(self.cluster)]
        return [*launch, "--schedule", "1f1b", *options, "--", *words]

    def launch(
        self, *words: str, options: tuple[str, ...] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, options=options),
            env=self.environment | environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=SLOW_MACHINE_S,
        )

    def script(self, text: str) -> str:
        path = self.directory / "train.sh"
        path.write_text(text)
        return str(path)

    @property
    def calls(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @property
    def trained(self) -> list[str]:
        """The command line of the one training that was started."""
        [call] = self.calls
        argv = call["argv"]
        assert isinstance(argv, list)
        return argv

    def is_tidy(self) -> bool:
        """No shims are left."""
        return list((self.directory / "tmp").iterdir()) == []


@pytest.fixture
def desk(tmp_path: Path, cluster_file: Callable[..., Path]) -> Desk:
    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk", cluster_file("one-a100"))


def test_a_script_trains_with_the_plan_and_its_status_comes_back(desk: Desk) -> None:
    script = desk.script(f"echo before\ntorchrun --nproc-per-node 8 train.py {MODEL} --lr 1e-4\n")
    ran = desk.launch("bash", script, STATUS="7")
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout == "before\ntraining\n"
    argv = desk.trained
    assert argv[-4:] == ["--lr", "1e-4", "--pipeline-model-parallel-size", "1"]
    assert argv[argv.index("--tensor-model-parallel-size") + 1] != "8"
    assert "changed  --tensor-model-parallel-size 8 -> " in ran.stderr
    assert desk.is_tidy()


def test_the_training_sees_no_shims(desk: Desk) -> None:
    script = f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 train.py {MODEL}\n"
    desk.launch("bash", desk.script(script))
    [call] = desk.calls
    assert call["connections"] == "1"
    assert "poseidon-launch" not in str(call["path"])
    assert isinstance(call["names"], list)
    assert [name for name in call["names"] if "POSEIDON" in name or "BASH_FUNC" in name] == []


def test_a_launcher_is_caught_however_it_is_called(desk: Desk) -> None:
    flags = f"--nproc-per-node 8 train.py {MODEL}"
    ways = (
        f"export PATH=$PWD/bin:$PATH\ntorchrun {flags} --way 0",
        f"set -e\nexec torchrun {flags} --way 1",
        f"nohup torchrun {flags} --way 2 > out 2>&1 &\nwait $!",
        f"cmd='torchrun {flags} --way 3'\neval $cmd | tee out",
        f'bash -c "torchrun {flags} --way 4"',
        f"export PYTHONPATH=/nowhere\ncd /\ntorchrun {flags} --way 5",
        f"OMP_NUM_THREADS=1 sh -c 'torchrun {flags} --way 6'",
        f"python $(which torchrun) {flags} --way 7",
    )
    for number, text in enumerate(ways):
        (desk.directory / f"way{number}.sh").write_text(text)
    everything = "".join(f"bash way{number}.sh || exit 1\n" for number in range(len(ways)))
    ran = desk.launch("bash", desk.script(everything), options=("-q",))
    assert ran.returncode == 0, ran.stderr
    for number, call in enumerate(desk.calls):
        argv = call["argv"]
        assert isinstance(argv, list)
        assert argv[-4:] == ["--way", str(number), "--pipeline-model-parallel-size", "1"]
    assert len(desk.calls) == len(ways)
    assert desk.is_tidy()


def test_other_programs_go_straight_through(desk: Desk) -> None:
    text = f"""
python -c 'import sys; print(sys.argv[1:], sys.executable)' a "b c"
echo 'print(6 * 7)' | python3 -
python -m json.tool --help | head -1
torchrun --nproc-per-node 8 --new-option prepare.py --split
torchrun --nproc-per-node 8 train.py {MODEL}
"""
    ran = desk.launch("bash", desk.script(text), options=("-q",))
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("['a', 'b c'] ")
    assert lines[1] == "42"
    assert "json.tool" in lines[2]
    preparing, training = (call["argv"] for call in desk.calls)
    assert isinstance(preparing, list)
    assert isinstance(training, list)
    assert preparing[1:] == ["--nproc-per-node", "8", "--new-option", "prepare.py", "--split"]
    assert "--pipeline-model-parallel-size" in training
    assert ran.stderr == ""


def test_python_keeps_its_environment(desk: Desk) -> None:
    """A virtual environment is found by the path of its interpreter, which a shim must not hide."""
    environment = desk.directory / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=60)
    path = f"{environment / 'bin'}:{desk.environment['PATH']}"
    ask = "import sys; print(sys.executable, sys.prefix)"
    minor = f"python3.{sys.version_info.minor}"
    text = "".join(f"{name} -c '{ask}'\n" for name in ("python", "python3", minor))
    direct = subprocess.run(["bash", "-c", text], env=desk.environment | {"PATH": path}, capture_output=True, text=True)
    ran = desk.launch("bash", desk.script(text), PATH=path)
    assert ran.stdout == direct.stdout
    assert str(environment) in ran.stdout


def test_who_ends_the_search_gets_no_training(desk: Desk) -> None:
    model = (
        "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --ffn-hidden-size 28672 --swiglu --bf16 "
        "--seq-length 4096 --position-embedding-type rope --micro-batch-size 1 --global-batch-size 1280 "
        "--vocab-size 32000 --use-distributed-optimizer"
    )
    desk.cluster = ROOT / "configs" / "clusters" / "mixed-5-types.yaml"
    words = ("torchrun", "--nnodes", "80", "--nproc-per-node", "8", "train.py", *model.split())
    command = desk.command(*words, options=("--schedule", "interleaved_1f1b"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=desk.environment, cwd=desk.directory, text=True, **pipes) as run:
        assert run.stderr is not None
        assert "incumbent" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=SLOW_MACHINE_S)
    assert (run.returncode, out) == (130, "")
    assert err.endswith("interrupted\n")
    assert desk.calls == []


@pytest.mark.parametrize(
    ("number", "in_script"), [(signal.SIGTERM, True), (signal.SIGTERM, False), (signal.SIGINT, False)]
)
def test_signals_reach_the_training(desk: Desk, number: signal.Signals, in_script: bool) -> None:
    flags = f"--nproc-per-node 8 train.py {MODEL} --wait"
    words = ("bash", desk.script(f"torchrun {flags}\necho after\n")) if in_script else ("torchrun", *flags.split())
    with subprocess.Popen(
        desk.command(*words), env=desk.environment, cwd=desk.directory, stdout=subprocess.PIPE
    ) as run:
        assert wait_until(lambda: desk.calls, SLOW_MACHINE_S)
        os.kill(run.pid, number)
        status = run.wait(SLOW_MACHINE_S)
    assert Path(f"{desk.log}.signal").read_text() == number.name
    if not in_script:
        assert status == 9
    else:
        assert status == 128 + number  # what bash itself dies of
    assert desk.is_tidy()


def test_a_dry_run_prints_the_command_and_starts_nothing(desk: Desk) -> None:
    script = desk.script(f"echo noise\ntorchrun --nproc-per-node 8 train.py {MODEL} --note 'a $b' | tee out\n")
    ran = desk.launch("bash", script, options=("--dry-run",))
    assert ran.returncode == 0, ran.stderr
    assert desk.calls == []
    assert "noise" in ran.stderr
    pasted = subprocess.run(
        ["bash", "-c", ran.stdout], env=desk.environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert pasted.stdout == "training\n"
    assert "a $b" in desk.trained
    assert (desk.directory / "out").read_text() == ""


def test_a_dry_run_needs_no_launcher_on_this_machine(desk: Desk) -> None:
    script = desk.script(f"torchrun --nproc-per-node 8 train.py {MODEL}\n")
    dry = desk.launch("bash", script, options=("--dry-run",), PATH=os.defpath)
    assert dry.returncode == 0, dry.stderr
    assert dry.stdout.startswith("torchrun --nproc-per-node 8 ")
    ran = desk.launch("bash", script, PATH=os.defpath)
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[-1] == "torchrun: cannot be started: No such file or directory"


def test_json_is_alone_on_standard_output(desk: Desk) -> None:
    script = desk.script(f"echo noise\ntorchrun --nproc-per-node 8 train.py {MODEL}\n")
    ran = desk.launch("bash", script, options=("--json",), STATUS="3")
    data = json.loads(ran.stdout)
    assert (data["schema"], data["exit_status"]) == ("poseidon.launch/1", 3)
    [result] = data["launches"]
    assert (result["exit_status"], result["command"][0]) == (3, "torchrun")
    assert result["command"][1:] == desk.trained[1:]
    assert "training" in ran.stderr


def test_a_refusal_shows_through_a_pipe(desk: Desk) -> None:
    ran = desk.launch("bash", desk.script(f"torchrun --nproc-per-node 4 train.py {MODEL} | tee out\n"))
    assert ran.returncode == 2
    assert ran.stderr.startswith("--nproc-per-node: is 4 on node 0; ")
    assert len(ran.stderr.splitlines()) == 1
    assert desk.calls == []


def test_a_command_without_a_launcher_is_told_so(desk: Desk) -> None:
    ran = desk.launch("bash", "-c", "exit 5")
    assert ran.returncode == 5
    assert "called no torchrun" in ran.stderr
    assert desk.launch("true", options=("--dry-run",)).returncode == 2
    missing = desk.launch("no-such-program")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert desk.is_tidy()


def test_variables_before_the_command_are_set(desk: Desk) -> None:
    words = ("STATUS=6", "LOG_LEVEL=a b", "torchrun", *f"--nproc-per-node 8 train.py {MODEL}".split())
    ran = desk.launch(*words, options=("--dry-run",))
    assert ran.stdout.startswith("STATUS=6 LOG_LEVEL='a b' torchrun --nproc-per-node 8 \\\n  train.py \\\n")
    assert desk.launch(*words).returncode == 6
