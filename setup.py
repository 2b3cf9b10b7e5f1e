"""Builds the Cython kernels. Everything declarative is in pyproject.toml.

A source at ``ext/poseidon/search/_tables.pyx`` becomes the module ``poseidon.search._tables``: the path under ``ext/``
is the import path, so ``cimport`` finds the ``.pxd`` files in place, in an editable install and from an sdist alike.

Set ``POSEIDON_BOUNDS_CHECK=1`` to build with bounds checks and ``POSEIDON_WERROR=1`` to turn compiler warnings into
errors (CI does both).
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SHARED = "poseidon._cython"
"""What Cython adds to every module (memory views above all), compiled once for all of them: half of the build time."""
CHECKED = os.environ.get("POSEIDON_BOUNDS_CHECK", "0") == "1"
BUILD = Path("build/checked" if CHECKED else "build/release")
DIRECTIVES = {
    "language_level": "3",
    "embedsignature": True,
    "boundscheck": CHECKED,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": CHECKED,
}
COMPILE_ARGUMENTS: list[str] = []
if sys.platform != "win32":
    # -ffp-contract=off: the compiled search and its plain-Python twin must agree to the last bit.
    COMPILE_ARGUMENTS += ["-O1" if CHECKED else "-O3", "-Wall", "-ffp-contract=off", "-fno-math-errno"]
    # Debug symbols take a quarter of the compile time. The assertions are the bounds checks of C++ vectors.
    COMPILE_ARGUMENTS += ["-g", "-D_GLIBCXX_ASSERTIONS"] if CHECKED else ["-g0"]
if os.environ.get("POSEIDON_WERROR", "0") == "1":
    COMPILE_ARGUMENTS.append("-Werror")


def flags_file() -> Path:
    """A file that changes exactly when the flags of the last build were others; every module depends on it.

    Without it a build in place would keep the modules of the other kind of build, whose sources are as old.
    """
    path = Path("build/flags.txt")
    flags = f"{DIRECTIVES}\n{COMPILE_ARGUMENTS}\n"
    if not path.is_file() or path.read_text() != flags:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(flags)
    return path


def extensions() -> list[Extension]:
    """One extension for each ``ext/**/*.pyx``, and the one that they share."""
    modules = {".".join(path.relative_to("ext").with_suffix("").parts): path for path in Path("ext").rglob("*.pyx")}
    modules[SHARED] = Path("poseidon/_cython.c")
    flags = flags_file().as_posix()
    return [
        Extension(name, [source.as_posix()], extra_compile_args=COMPILE_ARGUMENTS, depends=[flags])
        for name, source in sorted(modules.items())
    ]


setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["ext"],
        shared_utility_qualified_name=SHARED,
        compiler_directives=DIRECTIVES,
        build_dir=(BUILD / "cython").as_posix(),
    ),
    options={"build": {"build_base": BUILD.as_posix()}, "build_ext": {"parallel": os.cpu_count() or 1}},
)
