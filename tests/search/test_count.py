"""Counting configurations: exact integers, equal to trying everything."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given

from poseidon.cost.problem import Problem
from poseidon.search.count import count_configurations
from tests.search.example import EXAMPLE, chain
from tests.search.strategies import examples, num_configurations, problems


@given(problem=problems())
@examples(70)
def test_it_equals_enumeration(problem: Problem) -> None:
    assert count_configurations(problem) == num_configurations(problem)


def test_layers_on_the_stages_of_one_kind_are_compositions() -> None:
    assert count_configurations(chain(4, 10)) == math.comb(9, 3)
    assert count_configurations(chain(1, 10)) == 1
    assert count_configurations(chain(10, 10)) == 1
    assert count_configurations(chain(11, 10)) == 0


def test_every_chunk_counts_as_a_stage_of_its_own() -> None:
    problem = chain(3, 12, schedule="interleaved_1f1b", num_chunks=2, num_micro_batches=6)
    assert count_configurations(problem) == math.comb(11, 5)


def test_orders_multiply_allocations() -> None:
    kinds = tuple(replace(kind, stages=3, max_layers=((20,),) * 6) for kind in EXAMPLE.kinds)
    problem = replace(EXAMPLE, kinds=kinds, num_stages=6, num_layers=20, assignment="stage")
    assert count_configurations(problem) == math.comb(6, 3) * math.comb(19, 5)
    nodes = replace(problem, assignment="node", kinds=tuple(replace(kind, stages_per_node=3) for kind in kinds))
    assert count_configurations(nodes) == 2 * math.comb(19, 5)


def test_large_counts_are_exact_integers() -> None:
    # More than 64 bits hold: 30 stages of each of two kinds, 200 layers.
    kinds = tuple(replace(kind, stages=30, max_layers=((200,),) * 60) for kind in EXAMPLE.kinds)
    problem = replace(EXAMPLE, kinds=kinds, num_stages=60, num_layers=200, assignment="stage")
    assert count_configurations(problem) == math.comb(60, 30) * math.comb(199, 59)
