"""Runs a program on this machine or, by ssh, on another one."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from poseidon.errors import InputError, Mistake
from poseidon.launch.device_query import Answer

LONGEST_S = 60
"""A driver that has to start all devices first takes some seconds."""
CONNECT_S = 10
SSH_FAILED = 255
"""The status with which ssh itself fails (its manual)."""
NOT_THERE = 127


def ask_here(words: Sequence[str]) -> Answer:
    """Runs it on this machine."""
    return _run(words)


def ask_by_ssh(host: str, words: Sequence[str]) -> Answer:
    """Runs it on `host`, a checked name; InputError where ssh can't reach it.

    It never asks for a password: nobody is there to type one.
    """
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")
    answer = _run(("ssh", *options, "--", host, shlex.join(words)))
    if answer.status == SSH_FAILED:
        reason = " ".join(answer.error.split())[-200:] or "no reason given"
        message = f"cannot be reached by ssh without a password ({reason}); or give --cluster FILE"
        raise InputError(Mistake(host, "", message))
    if answer.status == NOT_THERE and answer.error.startswith("ssh:"):
        raise InputError(Mistake(host, "", "needs ssh, which is not installed here; or give --cluster FILE"))
    return answer


def _run(words: Sequence[str]) -> Answer:
    try:
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST_S, check=False)
    except FileNotFoundError:
        return Answer(NOT_THERE, "", f"{words[0]}: not found")
    except PermissionError:
        return Answer(NOT_THERE, "", f"{words[0]}: may not be run")
    except subprocess.TimeoutExpired:
        return Answer(124, "", f"no answer within {LONGEST_S} s")
    return Answer(ran.returncode, _text(ran.stdout), _text(ran.stderr))


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")[:1_000_000]
