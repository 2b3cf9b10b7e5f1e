"""What is searched, how, and when to stop."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from poseidon.inputs.fields import Count, Efficiency, Switch
from poseidon.inputs.file_model import FileModel

Policy = Literal["exact", "paper", "brute-force", "metis", "hexiscale"]
CostModel = Literal["dag", "eq1"]
Assignment = Literal["node", "stage"]
TpScope = Literal["uniform", "per-type", "per-stage"]
Target = Literal["megatron"]


class SearchSettings(FileModel):
    """The space to search and the effort to spend."""

    policy: Policy = "exact"
    """"exact" proves its plan; "paper" is the published algorithm; "brute-force" evaluates everything; "metis" and
    "hexiscale" are other planners (docs/rivals.md).
    """
    cost_model: CostModel = "dag"
    """What the policy "exact" compares plans by: the DAG, or the static formula Eq. 1, to see what that costs."""
    assignment: Assignment = "node"
    """"node": the pipeline takes whole nodes in some order; "stage": any order of stage types."""
    tp: TpScope = "uniform"
    """Whether the TP degree is one for all stages, one per accelerator type, or free per stage."""
    gap: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.0
    """Stop when the plan is proven within this fraction of the optimum."""
    time_limit_s: Annotated[float, Field(strict=True, gt=0, le=1e8)] | None = None
    """Stop after this many seconds; absent: no limit."""
    node_limit: Annotated[int, Field(strict=True, ge=1, le=10**15)] | None = None
    """Stop after this many search nodes; absent: no limit."""
    top: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 1
    """Number of plans to report, the best of each outer choice."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    """Of the random warm-up samples."""
    warmup_samples: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] = 500
    """Random feasible configurations that are evaluated first (paper, section 5)."""
    stage_pruning: Switch = True
    """Policy "paper": prune by Theorem 1."""
    layer_pruning: Switch = True
    """Policy "paper": prune by Theorem 2 (ridge)."""
    allow_idle: Switch = False
    """Whether devices may stay unused."""
    target: Target | None = None
    """Restrict to what this framework can run; "megatron": the same TP and DP in all stages."""
    fixed_dp: Count | None = None
    """Only this data-parallel degree."""
    fixed_tp: Count | None = None
    """Only this tensor-parallel degree."""
    fixed_pp: Count | None = None
    """Only this number of pipeline stages."""
    max_memory_fraction: Efficiency = 1.0
    """Part of each device's usable memory that a plan may fill."""
