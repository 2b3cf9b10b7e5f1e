"""What the zero-bubble paper profiled, calculated and measured (data/zero_bubble, each file with its source)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

PAPER = "Zero Bubble Pipeline Parallelism, Qi et al., ICLR 2024 (arXiv 2401.10241)"


@dataclass(frozen=True)
class Setting:
    """A model on p stages with m micro-batches: profiled times of one stage and micro-batch, and sizes.

    The stages take equally long: the first and the last have one layer less, for the vocabulary.
    """

    model: str
    num_stages: int
    num_micro_batches: int
    micro_batch_size: int
    forward_ms: float
    input_ms: float
    weight_ms: float
    transfer_ms: float
    num_chunks: int
    """Chunks of one layer per stage, as the paper runs interleaved 1F1B."""
    activation: float
    """Of one layer and micro-batch, in units of sequence x micro-batch: 34 h + 5 a s (arXiv 2205.05198, eq. 1)."""
    kept: float
    """What of it is kept for the weight part: 32 h (paper, section 2.3)."""

    @property
    def compute_ms(self) -> float:
        """A stage's computation in one iteration."""
        return self.num_micro_batches * (self.forward_ms + self.input_ms + self.weight_ms)

    @property
    def label(self) -> str:
        """Model, stages and micro-batches."""
        return f"{self.model}, p {self.num_stages}, m {self.num_micro_batches}"


@dataclass(frozen=True)
class Printed:
    """One printed number: a bubble rate of table 5, or the samples per GPU and second of tables 4 and 9."""

    setting: Setting
    schedule: str
    value: float


def bubble_rates() -> tuple[Printed, ...]:
    """Table 5: the rates that the authors calculated."""
    settings = _settings()
    return tuple(
        Printed(_setting(settings, row), row["schedule"], float(row["bubble_rate"])) for row in _rows("bubble_rates")
    )


def throughputs() -> tuple[Printed, ...]:
    """Tables 4 and 9: measured samples per GPU and second."""
    settings = _settings()
    return tuple(
        Printed(_setting(settings, row), row["schedule"], float(row["samples_per_gpu_per_s"]))
        for row in _rows("throughput")
    )


def _settings() -> dict[tuple[str, int], Setting]:
    models = {row["model"]: row for row in _rows("models")}
    return {(row["model"], int(row["m"])): _profiled(row, models[row["model"]]) for row in _rows("profiled_times")}


def _profiled(row: dict[str, str], model: dict[str, str]) -> Setting:
    hidden, heads, sequence = int(model["hidden"]), int(model["heads"]), int(model["seq"])
    num_stages = int(row["p"])
    return Setting(
        model=row["model"],
        num_stages=num_stages,
        num_micro_batches=int(row["m"]),
        micro_batch_size=int(row["microbatch_size"]),
        forward_ms=float(row["T_F_ms"]),
        input_ms=float(row["T_B_ms"]),
        weight_ms=float(row["T_W_ms"]),
        transfer_ms=float(row["T_comm_ms"]),
        num_chunks=(int(model["layers"]) + 2) // num_stages,
        activation=34 * hidden + 5 * heads * sequence,
        kept=32 * hidden,
    )


def _setting(settings: dict[tuple[str, int], Setting], row: dict[str, str]) -> Setting:
    """The profiled setting of a row; where only other numbers of micro-batches were profiled, the nearest of them."""
    model, num_micro_batches = row["model"], int(row["m"])
    nearest = min((m for name, m in settings if name == model), key=lambda m: abs(m - num_micro_batches))
    profiled = settings[model, nearest]
    return Setting(**{**vars(profiled), "num_micro_batches": num_micro_batches})


def _rows(name: str) -> Iterator[dict[str, str]]:
    path = files("poseidon.validate") / "data" / "zero_bubble" / f"{name}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    yield from csv.DictReader(line for line in lines if not line.startswith("#"))
