"""Importers: profiles that other tools measured, as `poseidon.profile/1` (docs/import.md has a section for each)."""

from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run import Imported, import_profile

__all__ = ["ImportOptions", "Imported", "import_profile"]
