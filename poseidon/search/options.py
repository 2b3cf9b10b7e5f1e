"""How to search: one frozen value, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.search.tolerance import TIE

INTERLEAVED_NODES = 10_000
"""Search nodes after which an outer choice with several chunks is left at the gap it has, unless another limit is
given.
"""
POLICIES = ("exact", "paper", "brute-force")
RIVALS = ("metis", "hexiscale")
"""Policies of other planners, which have a space of their own (`poseidon.search.rivals`)."""
COST_MODELS = ("dag", "eq1")


@dataclass(frozen=True)
class SearchOptions:
    """Settings of a search.

    Raises ValueError, one plain sentence, for a value outside its range.
    """

    policy: str = "exact"
    gap: float = 0.0
    """Stop when a plan within this fraction of the optimum is proven."""
    time_limit_s: float | None = None
    node_limit: int | None = None
    """Most search nodes for one outer choice; None: as many as it takes (`INTERLEAVED_NODES` with several chunks)."""
    top: int = 1
    """Plans to return, one for each outer choice."""
    seed: int = 0
    warmup_samples: int = 500
    stage_pruning: bool = True
    layer_pruning: bool = True
    cost_model: str = "dag"
    """What plans are compared by: the DAG, or the static formula Eq. 1 (policy exact only)."""
    num_thresholds: int = 16
    """Completion tables built at once (docs/algorithm.md)."""
    most_table_values: int = 60_000_000
    """Most numbers in the completion tables of one outer choice (8 bytes each)."""

    @property
    def tie(self) -> float:
        """Fraction up to which times count as equal when the best plan is chosen."""
        return TIE if self.policy == "exact" and self.gap == 0 else 0.0

    @property
    def shares_best(self) -> bool:
        """Whether outer choices are searched for plans that beat those of the others."""
        return self.policy != "brute-force"

    def __post_init__(self) -> None:
        """Refuses values outside their range."""
        if self.policy not in POLICIES:
            raise ValueError(f"policy is {self.policy!r}; accepted: {', '.join(POLICIES)}")
        if self.cost_model not in COST_MODELS:
            raise ValueError(f"cost model is {self.cost_model!r}; accepted: {', '.join(COST_MODELS)}")
        if self.cost_model != "dag" and self.policy != "exact":
            raise ValueError(f"cost model {self.cost_model} is for the policy exact, not for {self.policy}")
        if not 0 <= self.gap < 1:
            raise ValueError(f"gap is {self.gap}; accepted: a fraction from 0 to below 1")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ValueError(f"time limit is {self.time_limit_s}; accepted: a positive number of seconds")
        if self.node_limit is not None and self.node_limit < 1:
            raise ValueError(f"search node limit is {self.node_limit}; accepted: a positive integer")
        if self.top < 1:
            raise ValueError(f"top is {self.top}; accepted: a positive integer")
        if not 1 <= self.num_thresholds <= 1024:
            raise ValueError(f"number of thresholds is {self.num_thresholds}; accepted: 1 to 1024")
        if self.warmup_samples < 0:
            raise ValueError(f"warm-up samples is {self.warmup_samples}; accepted: zero or a positive integer")
