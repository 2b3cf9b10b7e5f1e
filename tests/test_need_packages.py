"""The option with which CI makes sure that no test of another framework is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

CASES = {
    "module": 'import pytest\n\npytest.importorskip("no_such_package")\n\n\ndef test() -> None: ...\n',
    "test": 'import pytest\n\n\ndef test() -> None:\n    pytest.importorskip("no_such_package")\n',
    "fixture": (
        'import pytest\n\n\n@pytest.fixture\ndef it() -> None:\n    pytest.importorskip("no_such_package")\n\n\n'
        '@pytest.mark.usefixtures("it")\ndef test() -> None: ...\n'
    ),
    "other reason": 'import pytest\n\n\ndef test() -> None:\n    pytest.skip("no such device here")\n',
}
pytest_plugins = ("pytester",)


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with this one's conftest."""
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    return pytester


@pytest.mark.parametrize("case", CASES)
def test_a_missing_package_is_a_skip_unless_it_is_needed(project: pytest.Pytester, case: str) -> None:
    project.makepyfile(test_it=CASES[case])
    assert project.runpytest_inprocess("-p", "no:xdist").parseoutcomes() == {"skipped": 1}
    needing = project.runpytest_inprocess("-p", "no:xdist", "--need-packages")
    if case == "other reason":
        assert needing.parseoutcomes() == {"skipped": 1}
    else:
        assert needing.ret != 0
        assert "could not import 'no_such_package'" in needing.stdout.str()


def test_it_is_needed_by_worker_processes_too(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    project.makepyfile(test_it=CASES["module"])
    needing = project.runpytest_subprocess("--need-packages", "-n", "1")
    assert needing.ret != 0
    assert "could not import 'no_such_package'" in needing.stdout.str()
