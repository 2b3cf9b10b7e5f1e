"""Which tests run in the same worker of pytest-xdist: those that share something costly, which every worker would make.

xdist's own `loadgroup` would do this by marks, but has to be asked for on every command line, and did not keep marked
tests together when it was tried (3.8).
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

SHARED = {
    "tests/ray_jobs/test_backend.py": "Ray cluster",
    "tests/ray_jobs/test_connect.py::test_another_port_of_a_real_cluster": "Ray cluster",
    "tests/ray_jobs/test_deaths.py": "Ray cluster",
    "tests/ray_jobs/test_same_answer.py": "Ray cluster",
    "tests/ray_jobs/test_job.py": "Ray head with its job server",
    "tests/output/export/": "plans of shipped experiments",
    "tests/paper/": "evaluation of small experiments",
    "tests/report/": "plans, and Chromium",
    "tests/sweep/test_resume.py": "sweep that nobody kills",
    "tests/test_import_direction.py": "parsed sources",
    "tests/validate/test_zero_bubble.py": "comparison with the zero-bubble paper",
}
"""How the ids of tests begin, and what they share."""


class SharedFirst(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """Hands out what is shared first, the largest group before all, then one test after the other."""

    def _split_scope(self, nodeid: str) -> Any:
        return next((shared for start, shared in SHARED.items() if nodeid.startswith(start)), nodeid)
