"""Which schedule is faster: the zero-bubble paper's measured throughput beside the simulator's."""

from __future__ import annotations

from itertools import combinations

from poseidon.simulate import Transfers
from poseidon.validate.comparison import Comparison, Row, Target, mean_absolute
from poseidon.validate.zero_bubble_data import PAPER, Printed, throughputs
from poseidon.validate.zero_bubble_pipelines import cost_ms, timeline_of

CLEAR = 0.02 + 1e-9
"""Measured differences up to this share (2 %, but for rounding) may be noise: the paper prints three digits."""
TRANSFERS: dict[str, Transfers] = {
    "1F1B": "blocking",
    "1F1B-I": "blocking",
    "ZB-1p": "overlapped",
    "ZB-2p": "overlapped",
}
"""1F1B and 1F1B-I ran in Megatron-LM, which waits for its transfers; the ZB runtime sends beside the computation."""


def zero_bubble_ranking() -> Comparison:
    """Samples per GPU and second of tables 4 and 9, and whether the schedules of each setting rank as measured."""
    entries = throughputs()
    rows = tuple(_row(entry, TRANSFERS[entry.schedule]) for entry in entries)
    clear, wrong = _pairs(rows)
    _, wrong_overlapped = _pairs(tuple(_row(entry, "overlapped") for entry in entries))
    return Comparison(
        name="zero-bubble-ranking",
        title="Zero-bubble paper: throughput, and which schedule is faster",
        source=f"{PAPER}, tables 4, 6 and 9",
        basis="measured",
        rows=rows,
        targets=(Target(f"pairs ranked wrongly, of {clear} that differ by more than 2 %", len(wrong), 0, "pairs"),),
        summary=(
            f"{clear - len(wrong)} of {clear} pairs ranked as measured; throughput "
            f"{mean_absolute(tuple(row.relative_error for row in rows)):.1%} too high on average, because the profiled "
            "times leave out the optimizer step, the data and everything else"
        ),
        notes=(
            "1F1B and 1F1B-I with blocking transfers (Megatron-LM), ZB-1p and ZB-2p with overlapped ones; with "
            f"overlapped transfers for all, {len(wrong_overlapped)} pairs would be ranked wrongly.",
            "Table 9 (few micro-batches) takes the times profiled with the fewest micro-batches of table 6.",
            *wrong,
        ),
    )


def _row(entry: Printed, transfers: Transfers) -> Row:
    setting, schedule = entry.setting, entry.schedule
    cost = cost_ms(schedule, timeline_of(schedule, setting, transfers))
    samples = setting.num_micro_batches * setting.micro_batch_size
    predicted = samples / (setting.num_stages * cost / 1e3)
    return Row(f"{setting.label}: {schedule}", predicted, entry.value, "samples/GPU/s", setting.label)


def _pairs(rows: tuple[Row, ...]) -> tuple[int, list[str]]:
    """How many pairs of a setting's schedules clearly differ, and sentences about those that we rank wrongly."""
    clear, wrong = 0, []
    for one, other in combinations(rows, 2):
        if one.group != other.group:
            continue
        fast, slow = sorted((one, other), key=lambda row: row.observed, reverse=True)
        if fast.observed / slow.observed - 1 > CLEAR:
            clear += 1
            if fast.predicted <= slow.predicted:
                wrong.append(f"Ranked wrongly: {fast.label} is faster than {slow.label}.")
    return clear, wrong
