"""Profiles: what one layer costs on an accelerator, from formulas or from a file."""

from poseidon.profile.analytic import analytic_profile
from poseidon.profile.file import profile_to_json, read_profile, write_profile
from poseidon.profile.loading import load_profile
from poseidon.profile.profile import LayerKey, MeasuredAllReduce, MeasuredTransfer, Profile, Row, RowKey

__all__ = [
    "LayerKey",
    "MeasuredAllReduce",
    "MeasuredTransfer",
    "Profile",
    "Row",
    "RowKey",
    "analytic_profile",
    "load_profile",
    "profile_to_json",
    "read_profile",
    "write_profile",
]
