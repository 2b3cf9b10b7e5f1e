"""What stands for torchrun, python and python3 on the PATH of a training script: lets everything through but launchers.

It is run by its path, by an interpreter that may have nothing installed, before every program that it stands for: so it
needs the standard library alone, and little of that.
"""

from __future__ import annotations

import os
import sys

DIRECTORY = "POSEIDON_LAUNCH_SHIMS"
"""Environment variable: the directory of the shims, of what they need, and of what they leave."""
INTERPRETER = "interpreter"
"""Name of the file with the path of the Python that runs Poseidon."""
ENTRY = "caught.py"
"""Name of the program with which Poseidon takes a launcher's command line."""
LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch")
NAMES = ("torchrun", "python", "python3")
"""The programs that shims stand for, beside every python3.N on the PATH."""


def script_index(name: str, arguments: list[str]) -> int | None:
    """Where the options of a launcher begin in a program's arguments; None where it is not called as a launcher.

    ``torchrun ...`` at once, ``python -u -m torch.distributed.launch ...`` after the module, ``python PATH/torchrun``
    after the path.
    """
    if os.path.basename(name) == "torchrun":
        return 0
    if not is_python(os.path.basename(name)):
        return None
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not word.startswith("-") or word in ("-", "--"):
            return index + 1 if os.path.basename(word) == "torchrun" else None
        if word.startswith("--"):
            index += 2 if word == "--check-hash-based-pycs" else 1
            continue
        for position, letter in enumerate(word[1:], start=1):
            rest = word[position + 1 :]
            if letter == "m":
                module, after = (rest, index + 1) if rest else ("".join(arguments[index + 1 : index + 2]), index + 2)
                return after if module in LAUNCHER_MODULES else None
            if letter == "c":
                return None
            if letter in "XW":
                index += 0 if rest else 1
                break
        index += 1
    return None


def is_python(name: str) -> bool:
    """Whether a program is called python, python3 or python3.N."""
    return name.startswith("python") and (name == "python" or name[len("python") :].replace(".", "").isdigit())


def real_program(name: str, directory: str) -> str | None:
    """The first program of this name on the PATH that is not a shim."""
    shims = os.path.realpath(directory)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.realpath(folder or os.curdir) != shims and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _behind(word: str, directory: str) -> str:
    """The program behind a shim, where a word is the path of one (``python $(which torchrun)``)."""
    folder, name = os.path.split(word)
    if not folder or os.path.realpath(folder) != os.path.realpath(directory):
        return word
    return real_program(name, directory) or word


def without_shims(environment: dict[str, str], directory: str) -> dict[str, str]:
    """An environment in which no shim is found."""
    shims = os.path.realpath(directory)
    cleaned = {
        key: value
        for key, value in environment.items()
        if key != DIRECTORY and not (key.startswith("BASH_FUNC_") and key[10:].partition("%")[0] in NAMES)
    }
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    cleaned["PATH"] = os.pathsep.join(folder for folder in folders if os.path.realpath(folder or os.curdir) != shims)
    return cleaned


def main() -> None:
    """Becomes the real program, or Poseidon with the launcher's command line."""
    name, arguments = sys.argv[1], sys.argv[2:]
    directory = os.environ.get(DIRECTORY, "")
    if script_index(name, arguments) is None or not directory:
        real = real_program(name, directory)
        if real is None:
            sys.stderr.write(f"{name}: command not found\n")
            sys.exit(127)
        # By its path: Python looks for itself, and for its environment, by the name that it is started with.
        os.execv(real, [real, *arguments])
    environment = without_shims(dict(os.environ), directory)
    arguments = [_behind(word, directory) for word in arguments]
    with open(os.path.join(directory, INTERPRETER), encoding="utf-8") as file:
        interpreter = file.read()
    # -E: the script's PYTHONPATH is for its training, not for us.
    os.execve(interpreter, [interpreter, "-E", os.path.join(directory, ENTRY), name, *arguments], environment)


if __name__ == "__main__":
    main()
