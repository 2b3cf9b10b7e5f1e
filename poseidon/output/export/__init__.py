"""Exports plans to training frameworks: one file for each framework, names in `registry`."""

from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.places import Place
from poseidon.output.export.registry import FRAMEWORKS, export_plan, title_of
from poseidon.output.export.write import write_files

__all__ = ["FRAMEWORKS", "Export", "ExportedFile", "Place", "Start", "export_plan", "title_of", "write_files"]
