"""Our orders beside PyTorch's: always against lines that it printed, also against PyTorch itself if it is installed."""

from pathlib import Path

import pytest

from poseidon.schedule import check_order, get_schedule, order_from_text, order_to_text

OURS = {"1F1B": "1f1b", "GPipe": "gpipe", "Interleaved1F1B": "interleaved_1f1b"}
SHAPES = {
    "1F1B": [(2, 4, 1), (3, 7, 1), (4, 4, 1), (8, 20, 1)],
    "GPipe": [(2, 3, 1), (4, 8, 1), (5, 2, 1)],
    "Interleaved1F1B": [(2, 2, 2), (2, 6, 3), (3, 9, 2), (4, 8, 4), (8, 16, 2)],
}


def printed_orders():
    """(PyTorch's name, stages, micro-batches, chunks, lines without the rank)."""
    text = (Path(__file__).parent / "data" / "torch-orders.txt").read_text(encoding="utf-8")
    for block in text.split("\n## ")[1:]:
        header, *lines = block.strip().splitlines()
        name, *sizes = header.split()
        yield name, *map(int, sizes), [line.split(": ")[1] for line in lines]


@pytest.mark.parametrize(
    "printed", list(printed_orders()), ids=lambda printed: f"{printed[0]}-{printed[1]}-{printed[2]}"
)
def test_orders_equal_the_lines_that_pytorch_printed(printed):
    name, num_stages, num_micro_batches, num_chunks, lines = printed
    if name not in OURS:
        order = order_from_text("\n".join(lines))
        assert check_order(order) == ()
        assert order_to_text(order).splitlines() == lines
        return
    ours = order_to_text(get_schedule(OURS[name]).order(num_stages, num_micro_batches, num_chunks)).splitlines()
    assert ours[: len(lines)] == lines
    assert len(lines) == num_stages - (name == "1F1B")


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name, shapes in SHAPES.items() for shape in shapes])
def test_orders_equal_those_of_the_installed_pytorch(name, shape):
    visualizer = pytest.importorskip("torch.distributed.pipelining._schedule_visualizer")
    num_stages, num_micro_batches, num_chunks = shape
    ranks = visualizer.get_schedule_ops(name, num_stages, num_micro_batches, num_chunks)
    theirs = [[str(action) for action in rank if action is not None and action.is_compute_op] for rank in ranks]
    ours = [line.split() for line in order_to_text(get_schedule(OURS[name]).order(*shape)).splitlines()]
    if name == "1F1B":
        # The order that PyTorch prints for the last rank is off by one; what it runs there is F_i, B_i in turn.
        last = [f"{num_stages - 1}{kind}{m}" for m in range(num_micro_batches) for kind in "FB"]
        assert ours.pop() == last
        theirs.pop()
    assert ours == theirs
