"""The graph: as large as the paper says, refused where the order is wrong, laid out so that one pass suffices."""

import itertools
import pickle

import numpy as np
import pytest

from poseidon.schedule import Order, get_schedule, order_from_operations, order_to_operations
from poseidon.simulate import build_graph
from poseidon.simulate.listing import CHAINED, FIRST, NOTHING

SHAPES = list(itertools.product((1, 2, 5), (1, 3, 8), (1, 2, 4)))


@pytest.mark.parametrize("schedule", ["1f1b", "eager_1f1b", "gpipe"])
@pytest.mark.parametrize(("num_stages", "num_micro_batches", "num_pipelines"), SHAPES)
def test_nodes_and_edges_are_those_of_the_paper(schedule, num_stages, num_micro_batches, num_pipelines):
    size = build_graph(get_schedule(schedule).order(num_stages, num_micro_batches)).size(num_pipelines)
    computations = 2 * num_stages * num_micro_batches
    inter_stage, intra_stage = 2 * (num_stages - 1) * num_micro_batches, num_stages * (2 * num_micro_batches - 1)
    auxiliary = num_pipelines + num_stages
    assert size.num_nodes == num_pipelines * computations + num_stages + 2
    assert (size.num_messages, size.num_successions) == (inter_stage, intra_stage)
    assert size.num_edges == num_pipelines * (inter_stage + intra_stage + num_stages) + auxiliary


@pytest.mark.parametrize(("num_stages", "groups", "num_chunks"), [(1, 2, 3), (2, 1, 2), (4, 3, 2), (3, 2, 4)])
def test_chunks_multiply_nodes_and_edges_as_in_the_paper(num_stages, groups, num_chunks):
    num_micro_batches = groups * num_stages
    order = get_schedule("interleaved_1f1b").order(num_stages, num_micro_batches, num_chunks)
    size = build_graph(order).size()
    assert size.num_operations == 2 * num_chunks * num_stages * num_micro_batches
    assert size.num_messages == 2 * (num_stages * num_chunks - 1) * num_micro_batches
    assert size.num_successions == num_stages * (2 * num_chunks * num_micro_batches - 1)


@pytest.mark.parametrize("num_pipelines", [1, 3])
def test_the_whole_graph_written_out_has_the_same_size(num_pipelines):
    order = get_schedule("interleaved_1f1b").order(2, 4, 2)
    nodes, edges = written_out(order_to_operations(order), num_pipelines)
    size = build_graph(order).size(num_pipelines)
    assert (size.num_nodes, size.num_edges) == (len(nodes), len(edges))


def written_out(operations, num_pipelines):
    """Every node and edge of the paper's graph by name, for V = 2 chunks."""
    num_stages = len(operations)
    nodes, edges = {"start", "end"}, set()
    for stage in range(num_stages):
        nodes.add(("R", stage))
        edges.add((("R", stage), "end"))
    for pipeline in range(num_pipelines):
        edges.add(("start", (pipeline, 0, operations[0][0])))
        for stage, names in enumerate(operations):
            nodes.update((pipeline, stage, name) for name in names)
            edges.update(((pipeline, stage, a), (pipeline, stage, b)) for a, b in itertools.pairwise(names))
            edges.add(((pipeline, stage, names[-1]), ("R", stage)))
            for name in names:
                kind, (microbatch, chunk) = name[0], name[1:].split(".")
                to = int(chunk) * num_stages + stage + (1 if kind == "F" else -1)
                if 0 <= to < 2 * num_stages:
                    receiver = f"{kind}{microbatch}.{to // num_stages}"
                    edges.add(((pipeline, stage, name), (pipeline, to % num_stages, receiver)))
    return nodes, edges


def test_a_split_backward_adds_a_node_and_no_message():
    whole = build_graph(order_from_operations([["F0", "B0"], ["F0", "B0"]], 1)).size()
    split = build_graph(order_from_operations([["F0", "I0", "W0"], ["F0", "B0"]], 1)).size()
    assert split.num_operations == whole.num_operations + 1
    assert split.num_messages == whole.num_messages


def test_everything_comes_after_what_it_waits_for(rng, make_order):
    listing = build_graph(make_order(rng)).listing
    own = np.arange(FIRST, FIRST + len(listing.entries))
    assert (listing.previous < own).all()
    assert (listing.sender < own).all()
    assert sorted(listing.entries.tolist()) == list(range(len(listing.entries)))


def test_chained_operations_stand_right_behind_their_previous_one(rng, make_order):
    graph = build_graph(make_order(rng))
    listing = graph.listing
    for place in np.flatnonzero(listing.sender == CHAINED):
        assert listing.previous[place] == FIRST + place - 1
        assert graph.operations.sender[listing.entries[place]] == -1


def test_the_first_operation_of_each_stage_has_none_before_it():
    listing = build_graph(get_schedule("1f1b").order(4, 8)).listing
    assert np.count_nonzero(listing.previous == NOTHING) == 4


def test_a_graph_of_one_stage_is_one_chain():
    listing = build_graph(get_schedule("1f1b").order(1, 4)).listing
    assert np.count_nonzero(listing.sender == CHAINED) == 7


@pytest.mark.parametrize(
    ("operations", "mistake"),
    [
        ([["F0", "B0", "B1", "F1"], ["F0", "F1", "B0", "B1"]], "stage 0 runs B1 before its forward F1"),
        ([["F0", "F1", "B0", "B1"], ["F0", "B0", "B1", "F1"]], "stage 1 runs B1 before its forward F1"),
        ([["F0", "F1", "B0", "B1"], ["F0", "F1", "B0", "B0"]], "stage 1 runs B0 twice"),
        ([["F0", "F1", "B0", "B1"], ["F0", "F1", "B0", "B1", "I1", "W1"]], "stage 1 runs both B1 and I1"),
        ([["F0", "F1", "B0", "B1"], ["F0", "F1", "B0", "W1", "I1"]], "stage 1 runs W1 before its input part I1"),
        ([["F0", "F1", "B0", "B1"], ["F0", "F1", "B0", "I1"]], "stage 1 never runs W1"),
        ([["F0", "F1", "B0", "B1"], ["F0", "F1", "B0", "B2"]], "stage 1 has no operation B2"),
        ([["F0", "F1", "B0", "B1"], []], "stage 1 never runs F0"),
        ([["F0", "B0", "F1", "B1"], ["F1", "B1", "F0", "B0"]], "the stages wait for each other in a circle"),
    ],
)
def test_every_kind_of_mistake_is_refused(operations, mistake):
    with pytest.raises(ValueError, match=f"this order cannot be run: {mistake}"):
        build_graph(order_from_operations(operations, 2))


def test_an_empty_order_is_refused():
    with pytest.raises(ValueError, match="never runs F0"):
        build_graph(Order(1, 1, 1, ((),)))


def test_more_mistakes_are_counted():
    with pytest.raises(ValueError, match=r"never runs F0 \(and 3 more mistakes\)"):
        build_graph(order_from_operations([["F1", "F2"]], 3))


def test_a_graph_says_how_to_get_it_into_another_process():
    with pytest.raises(TypeError, match="send the Order and build its graph again"):
        pickle.dumps(build_graph(get_schedule("1f1b").order(2, 2)))
