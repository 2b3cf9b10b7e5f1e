"""Builds the Cython kernels. Everything declarative is in pyproject.toml.

A source at ``ext/poseidon/search/_tables.pyx`` becomes the module ``poseidon.search._tables``: the path under ``ext/`` is the
import path, so ``cimport`` finds the ``.pxd`` files in place, in an editable install and from an sdist alike.

Set ``POSEIDON_BOUNDS_CHECK=1`` to build with bounds checks (CI runs the tests on both builds).
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED = os.environ.get("POSEIDON_BOUNDS_CHECK", "0") == "1"
DIRECTIVES = {
    "language_level": "3",
    "embedsignature": True,
    "boundscheck": CHECKED,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": CHECKED,
}
# -ffp-contract=off: the compiled search and its plain-Python twin must agree to the last bit.
COMPILE_ARGUMENTS = [] if sys.platform == "win32" else ["-O3", "-Wall", "-ffp-contract=off", "-fno-math-errno"]
if os.environ.get("POSEIDON_WERROR", "0") == "1":
    COMPILE_ARGUMENTS.append("-Werror")


def extensions() -> list[Extension]:
    """One extension for each ``ext/**/*.pyx``."""
    sources = sorted(Path("ext").rglob("*.pyx"))
    return [
        Extension(
            ".".join(source.relative_to("ext").with_suffix("").parts),
            [source.as_posix()],
            extra_compile_args=COMPILE_ARGUMENTS,
        )
        for source in sources
    ]


setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["ext"],
        compiler_directives=DIRECTIVES,
        build_dir="build/cython-checked" if CHECKED else "build/cython",
        force=CHECKED,
    )
)
