"""Costs: outer choices, and for each the problem that the search solves."""

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.costs import build_problem, costs
from poseidon.cost.finished_stage import FinishedStage, finished_memories
from poseidon.cost.memory import StageMemory
from poseidon.cost.outer import OuterChoice, OuterChoices, outer_choices
from poseidon.cost.placement import AlikeNodes, Placement, alike_nodes
from poseidon.cost.problem import Kind, LayerCost, Pool, Problem
from poseidon.cost.refusal import Refusal, no_choice_error
from poseidon.cost.shortfall import Shortfall, memory_shortfall

__all__ = [
    "AlikeNodes",
    "FinishedStage",
    "Kind",
    "LayerCost",
    "OuterChoice",
    "OuterChoices",
    "Placement",
    "Pool",
    "Problem",
    "ProblemBuilder",
    "Refusal",
    "Shortfall",
    "StageMemory",
    "alike_nodes",
    "build_problem",
    "costs",
    "finished_memories",
    "memory_shortfall",
    "no_choice_error",
    "outer_choices",
]
