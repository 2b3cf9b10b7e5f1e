"""Clusters that are not there: one clear line, exit status 2, soon."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.ray_jobs.searches import EXPERIMENTS

pytestmark = pytest.mark.ray
QUICKSTART = EXPERIMENTS / "quickstart.yaml"
SOON_S = 60.0
"""On a machine that has other things to do; docs/cli.md says 10 s on one that has not, Ray alone takes a minute."""
Command = Callable[..., subprocess.CompletedProcess[str]]


def complaint(command: Command, *where: str, **changes: str) -> str:
    """The one line of a command that must fail soon."""
    started = time.monotonic()
    ran = command(QUICKSTART, *where, **changes)
    assert time.monotonic() - started < SOON_S
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    [line] = ran.stderr.splitlines()
    return line


@contextmanager
def silent_server() -> Iterator[int]:
    """Accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def web_server() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign, assignment]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_nobody_listens(command: Command) -> None:
    address = f"127.0.0.1:{free_port()}"
    expected = f"command line: --ray {address}: no Ray cluster answers at {address}: connection refused"
    assert complaint(command, "--ray", address) == expected


def test_a_server_that_says_nothing(command: Command) -> None:
    with silent_server() as port:
        line = complaint(command, "--ray", f"127.0.0.1:{port}")
    assert line.endswith(f"no Ray cluster answers at 127.0.0.1:{port}: timed out")


def test_a_web_server(command: Command) -> None:
    with web_server() as port:
        line = complaint(command, "--ray", f"127.0.0.1:{port}")
    assert line.endswith(f"what answers at 127.0.0.1:{port} is not the head of a Ray cluster (usually port 6379)")


def test_another_port_of_a_real_cluster(command: Command, cluster: str) -> None:
    """The raylet's: it speaks the language of the head, but is not it."""
    import ray

    [node] = ray.nodes()
    port = node["NodeManagerPort"]
    line = complaint(command, "--ray", f"127.0.0.1:{port}")
    assert line.endswith(f"what answers at 127.0.0.1:{port} is not the head of a Ray cluster (usually port 6379)")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:0", "127.0.0.1:99999", "ray://127.0.0.1:10001"])
def test_what_is_no_address(command: Command, address: str) -> None:
    line = complaint(command, "--ray", address)
    assert line.endswith(f"{address} is no HOST:PORT of a cluster's head; accepted: HOST:PORT, auto, local")


def test_auto_without_a_cluster(command: Command, tmp_path: Path) -> None:
    line = complaint(command, "--ray", "auto", RAY_TMPDIR=str(tmp_path))
    assert line.endswith("no Ray cluster runs on this machine; accepted: HOST:PORT, or local to start one")


def test_auto_after_a_cluster_that_is_gone(command: Command, tmp_path: Path) -> None:
    (tmp_path / "ray").mkdir()
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "ray" / "ray_current_cluster").write_text(address)
    line = complaint(command, "--ray", "auto", RAY_TMPDIR=str(tmp_path))
    assert line.endswith(f"--ray auto: no Ray cluster answers at {address}: connection refused")


def test_ray_is_not_installed(environment: dict[str, str], tmp_path: Path) -> None:
    """In an interpreter that finds everything but Ray."""
    (tmp_path / "without_ray.py").write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class WithoutRay(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        return None if name.partition('.')[0] == 'ray' else super().find_spec(name, path, target)\n"
        "sys.meta_path = [WithoutRay if finder is PathFinder else finder for finder in sys.meta_path]\n"
        "if __name__ == '__main__':\n"
        "    from poseidon.cli import main_search\n"
        "    main_search()\n"
    )
    paths = os.pathsep.join((str(tmp_path), environment["PYTHONPATH"]))
    line = [sys.executable, "-m", "without_ray", str(QUICKSTART)]
    settings = {"env": environment | {"PYTHONPATH": paths}, "capture_output": True, "text": True, "timeout": 180}
    refused = subprocess.run([*line, "--ray", "auto"], **settings)  # type: ignore[call-overload]
    assert (refused.returncode, refused.stdout) == (2, "")
    [complaint] = refused.stderr.splitlines()
    assert complaint.endswith("Ray is not installed (pip install 'ray[default]'); --workers N needs no Ray")
    for where in ((), ("--workers", "2")):
        alone = subprocess.run([*line, "-q", *where], **settings)  # type: ignore[call-overload]
        assert alone.returncode == 0, alone.stderr
