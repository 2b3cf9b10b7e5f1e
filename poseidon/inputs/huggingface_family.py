"""What the families of Hugging Face configurations have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pydantic import ConfigDict

from poseidon.inputs.file_model import FileModel


class Family(FileModel):
    """The keys of a family's config.json that decide shapes."""

    model_config = ConfigDict(extra="ignore")

    @abstractmethod
    def shapes(self) -> dict[str, Any]:
        """The fields of `Model`, without the name; None where `Model` derives the value."""
