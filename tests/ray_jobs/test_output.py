"""What Ray prints from its threads stays off the standard output."""

from __future__ import annotations

import sys
import threading

import pytest

from ray_jobs.output import ray_on_standard_error


def test_only_what_threads_of_ray_print_is_moved(capsys: pytest.CaptureFixture[str]) -> None:
    with ray_on_standard_error():
        for name in ("ray_listen_error_messages", "somebody else"):
            thread = threading.Thread(target=print, args=(name,), name=name)
            thread.start()
            thread.join()
        print("the answer")
    ours = sys.stdout
    print("later")
    captured = capsys.readouterr()
    assert captured.out == "somebody else\nthe answer\nlater\n"
    assert captured.err == "ray_listen_error_messages\n"
    assert sys.stdout is ours
