"""How a process gets to a Ray cluster, and a clear line where it can't."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, cast

from poseidon.errors import InputError, Mistake

REACH_S = 3.0
"""Seconds in which the head of a cluster must accept a connection."""
CONNECT_S = 60.0
"""Seconds in which something that answers must let a driver in: a busy head takes its time."""
NO_HEAD = "what answers at {} is not the head of a Ray cluster (usually port 6379)"
OBJECT_STORE_BYTES = 500 * 2**20
"""Shared memory of a cluster that is started here."""


def connect(address: str, num_workers: int | None = None) -> bool:
    """Connects this process to a cluster; does nothing, and returns False, where it is connected already.

    `address` is HOST:PORT of the head, `auto` or `local` (see `ray_backend`). Raises InputError.
    """
    if importlib.util.find_spec("ray") is None:
        raise _refused(address, "Ray is not installed (pip install 'ray[default]'); --workers N needs no Ray")
    if "ray" in sys.modules and _is_connected():
        return False
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the driver says what became of every shard
    if address == "local":
        _start_local(num_workers)
        return True
    target = _target(address)
    _reach(address, target)  # before Ray is loaded, which takes seconds
    import ray

    try:
        with _own_signals(), _at_most(CONNECT_S, _refused(address, NO_HEAD.format(target))):
            ray.init(address=target, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise _refused(address, f"the cluster at {target} does not let this process in: {reason}") from None
    return True


def _is_connected() -> bool:
    import ray

    return bool(ray.is_initialized())


def disconnect() -> None:
    """Leaves the cluster; one that was started here ends."""
    import ray

    with redirect_stdout(sys.stderr):  # Ray prints now, and not in a thread, what it had kept back
        ray.shutdown()


def cluster_cpus() -> int:
    """CPUs that the cluster has now."""
    import ray

    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(resources.get("CPU", 1)))


def _start_local(num_workers: int | None) -> None:
    """Starts a cluster on this machine for the time of this process."""
    import ray

    os.environ.setdefault("RAY_worker_niceness", "0")  # the workers do all the work here
    with _own_signals():
        ray.init(
            address="local",
            num_cpus=num_workers,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )


def _target(address: str) -> str:
    """HOST:PORT of the head; InputError where none is known."""
    if address != "auto":
        return address
    known = os.environ.get("RAY_ADDRESS") or _cluster_of_this_machine()
    if not known:
        raise _refused(address, "no Ray cluster runs on this machine; accepted: HOST:PORT, or local to start one")
    return known


def _cluster_of_this_machine() -> str:
    """What `ray start` notes; empty where there is nothing."""
    folder = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()) / "ray"
    try:
        return (folder / "ray_current_cluster").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _reach(address: str, target: str) -> None:
    """Raises InputError where nobody accepts connections: Ray itself would try for a minute."""
    host, separator, port = target.removeprefix("ray://").rpartition(":")
    if target.startswith("ray://") or not separator or not port.isdigit() or not 0 < int(port) < 65536:
        raise _refused(address, f"{target} is no HOST:PORT of a cluster's head; accepted: HOST:PORT, auto, local")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S) as probe:
            is_plain = os.environ.get("RAY_USE_TLS", "0") != "1"
            if is_plain and not (_speaks_http2(probe) and _is_head(target)):
                raise _refused(address, NO_HEAD.format(target))
    except OSError as error:
        reason = error.strerror or str(error)
        raise _refused(address, f"no Ray cluster answers at {target}: {reason.lower()}") from None


def _speaks_http2(probe: socket.socket) -> bool:
    """Whether the other side begins as a gRPC server does, with a SETTINGS frame (RFC 9113, section 3.4)."""
    empty_settings = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
    probe.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + empty_settings)
    answer = probe.recv(9)
    return len(answer) == len(empty_settings) and answer[3] == empty_settings[3]


def _is_head(target: str) -> bool:
    """Whether a gRPC server is the head: the others of a cluster do not know the question. Ray itself asks for long."""
    modules = ("grpc", "ray.core.generated.gcs_service_pb2", "ray.core.generated.gcs_service_pb2_grpc")
    try:
        grpc, messages, services = (cast(Any, importlib.import_module(name)) for name in modules)
    except ImportError:
        return True  # then ray.init finds out
    with grpc.insecure_channel(target, options=(("grpc.enable_http_proxy", 0),)) as channel:
        try:
            services.NodeInfoGcsServiceStub(channel).CheckAlive(messages.CheckAliveRequest(), timeout=REACH_S)
        except grpc.RpcError as error:
            return bool(error.code() is not grpc.StatusCode.UNIMPLEMENTED)
    return True


def _refused(address: str, reason: str) -> InputError:
    return InputError(Mistake("command line", f"--ray {address}", reason))


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray puts its own handler in the place of ours for a request to terminate: puts ours back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def _at_most(seconds: float, complaint: InputError) -> Iterator[None]:
    """Ends the process with a complaint where a block takes longer: Ray waits in compiled code that nothing ends."""
    watchdog = threading.Timer(seconds, _give_up, (complaint,))
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _give_up(complaint: InputError) -> None:
    os.write(2, f"{complaint}\n".encode())
    os._exit(complaint.exit_code)
