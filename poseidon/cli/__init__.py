"""The command line: commands, options and exit codes; the only place that exits."""

from poseidon.cli.entry import main, main_search

__all__ = ["main", "main_search"]
