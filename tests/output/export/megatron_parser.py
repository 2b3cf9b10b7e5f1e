"""A parser with Megatron-LM's flags (see data/README.md)."""

from __future__ import annotations

import argparse
import ast
import csv
from pathlib import Path
from typing import NoReturn

TYPES = {"int": int, "float": float}


class Parser(argparse.ArgumentParser):
    """Raises instead of leaving the program."""

    def error(self, message: str) -> NoReturn:
        """What argparse calls for wrong usage."""
        raise ValueError(message)


def megatron_parser() -> Parser:
    """Knows the name, type, choices and number of values of every flag; no abbreviations, as in Megatron-LM."""
    parser = Parser(allow_abbrev=False)
    with (Path(__file__).parent / "data" / "megatron-arguments.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            names = row["flags"].split("|")
            if row["nargs"] == "0":
                parser.add_argument(*names, action="store_true")
                continue
            nargs = {"None": None, "*": "*", "+": "+"}.get(row["nargs"], row["nargs"])
            choices = ast.literal_eval(row["choices"]) if row["choices"].startswith("(") else None
            parser.add_argument(
                *names,
                type=TYPES.get(row["type"], str),
                choices=choices,
                nargs=int(nargs) if nargs and nargs.isdigit() else nargs,
            )
    return parser
