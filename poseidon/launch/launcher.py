"""A call of torchrun or torch.distributed.launch: its options, the training script and the script's arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poseidon.errors import InputError, Mistake
from poseidon.launch.arguments import Argument, Arguments, is_flag, parsed
from poseidon.launch.flag_table import launcher_flags
from poseidon.launch.shim import script_index

STATIC = "static"
DEFAULT_PORT = 29500
"""torchrun's own."""
ALL_DEVICES = ("auto", "gpu", "npu", "xpu")
"""What --nproc-per-node may say in place of a number: one process for each device of the node."""


@dataclass(frozen=True)
class LauncherCall:
    """``python -m torch.distributed.run --nnodes 2 train.py --k v``, in its parts."""

    program: tuple[str, ...]
    """``torchrun``, or ``python -u -m torch.distributed.launch``."""
    options: Arguments
    script: str
    arguments: tuple[str, ...]
    """Of the script."""
    environment: Mapping[str, str]
    """It is started in; PyTorch takes options from variables that begin with PET_."""

    @property
    def words(self) -> tuple[str, ...]:
        """The command line."""
        return (*self.program, *self.options.words, self.script, *self.arguments)

    @property
    def is_module(self) -> bool:
        """Whether the script is the name of a module."""
        return self.options.has("--module")

    @property
    def num_nodes(self) -> int:
        """Launchers; InputError for a range of numbers, since a plan is for one of them."""
        text = self._option("--nnodes") or "1"
        fewest, _, most = text.partition(":")
        if not fewest.isdigit() or int(fewest) < 1 or most not in ("", fewest):
            message = f"{text[:40]!r} is not one number of nodes, and a plan is for one; give --nnodes N"
            raise InputError(Mistake("--nnodes", "", message))
        return int(fewest)

    @property
    def node_rank(self) -> int:
        """This launcher's number; InputError where it is not one of them."""
        text = self._option("--node-rank") or "0"
        if not text.isdigit() or int(text) >= self.num_nodes:
            raise InputError(Mistake("--node-rank", "", f"{text[:40]!r} is not one of 0 to {self.num_nodes - 1}"))
        return int(text)

    @property
    def num_processes(self) -> int | None:
        """Processes on this node; None: one for each of its devices."""
        text = self._option("--nproc-per-node") or "1"
        if text in ALL_DEVICES:
            return None
        if not text.isdigit() or int(text) < 1:
            message = f"{text[:40]!r} is not a number of processes; accepted are also {', '.join(ALL_DEVICES)}"
            raise InputError(Mistake("--nproc-per-node", "", message))
        return int(text)

    @property
    def backend(self) -> str:
        """How the launchers find each other."""
        return "c10d" if self.options.has("--standalone") else self._option("--rdzv-backend") or STATIC

    @property
    def master_port(self) -> str:
        """Where the first launcher listens."""
        return self._option("--master-port") or str(DEFAULT_PORT)

    @property
    def endpoint(self) -> str:
        """``host:port``, where it is given in one; it then goes before the address of the master."""
        return self._option("--rdzv-endpoint") or ""

    def with_option(self, name: str, value: str) -> LauncherCall:
        """The call with another value of an option; its own spelling is kept, a new option comes last."""
        last = self.options.last(name)
        if last is None:
            items = (*self.options, Argument(name, (name, value), (value,)))
        else:
            items = tuple(item.with_value(value) if item is last else item for item in self.options)
        return replace(self, options=Arguments(items))

    def with_arguments(self, arguments: Sequence[str]) -> LauncherCall:
        """The call with other arguments of the script."""
        return replace(self, arguments=tuple(arguments))

    def _option(self, name: str) -> str | None:
        variable = "PET_" + name.removeprefix("--").replace("-", "_").upper()
        return self.options.text(name) or self.environment.get(variable)


def parsed_call(words: Sequence[str], environment: Mapping[str, str]) -> LauncherCall | None:
    """The call that a command line is; None where it calls no launcher. InputError for options that are not known."""
    start = script_index(words[0], list(words[1:]))
    if start is None:
        return None
    program, rest = tuple(words[: start + 1]), words[start + 1 :]
    options = parsed([_with_dashes(word) for word in _before_script(rest)], launcher_flags(), stop_at_word=True)
    num_options = len(options.words)
    _check_names(options)
    if num_options >= len(rest):
        raise InputError(Mistake(program[0], "", "starts no script: the name of the training script is expected"))
    written = _as_written(options, rest)
    return LauncherCall(program, written, rest[num_options], tuple(rest[num_options + 1 :]), environment)


def _before_script(rest: Sequence[str]) -> list[str]:
    """All words; one that stands for nothing (``--`` before the script) ends the options."""
    return list(rest[: rest.index("--")]) if "--" in rest else list(rest)


def _with_dashes(word: str) -> str:
    """``--nproc_per_node=8`` as ``--nproc-per-node=8``, and ``-r3`` as ``-r=3``."""
    if not is_flag(word):
        return word
    if match := re.fullmatch(r"-([rt])([^=].*)", word):
        return f"-{match[1]}={match[2]}"
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _as_written(options: Arguments, rest: Sequence[str]) -> Arguments:
    """The options with the words that the user wrote."""
    items, start = [], 0
    for item in options:
        end = start + len(item.words)
        items.append(replace(item, words=tuple(rest[start:end])))
        start = end
    return Arguments(tuple(items))


def _check_names(options: Arguments) -> None:
    known = launcher_flags()
    for item in options:
        if item.flag is None:
            meant = sorted({flag.name for name, flag in known.items() if name.startswith(item.name)})
            hint = f"write {' or '.join(meant)} in full" if meant else "it is not an option of torchrun that is known"
            raise InputError(Mistake(item.words[0], "", f"{hint}, so that it is clear where the script begins"))
