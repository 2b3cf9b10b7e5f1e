"""How large the graph is that the paper describes (section 4.1), for any number of identical pipelines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphSize:
    """Nodes and edges of the graph of `num_pipelines` pipelines; the first three counts are those of one pipeline.

    The all-reduce of a stage joins the pipelines; it, the start and the end are nodes of the whole graph.
    """

    num_pipelines: int
    num_stages: int
    num_operations: int
    num_messages: int
    """Edges between stages, along which activations and gradients travel."""
    num_successions: int
    """Edges within a stage, from each operation to the next in its order."""

    @property
    def num_nodes(self) -> int:
        """Operations of all pipelines, one all-reduce per stage, the start and the end."""
        return self.num_pipelines * self.num_operations + self.num_stages + 2

    @property
    def num_edges(self) -> int:
        """Messages and successions of all pipelines, edges to the all-reduces, from the start and to the end."""
        to_all_reduce = self.num_pipelines * self.num_stages
        return (
            self.num_pipelines * (self.num_messages + self.num_successions)
            + to_all_reduce
            + self.num_pipelines
            + self.num_stages
        )
