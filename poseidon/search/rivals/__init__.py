"""Other planners, from the descriptions that their authors published: policies with a space of their own.

They look at the cluster, not at outer choices: every stage may have its own DP and TP. docs/rivals.md says what they do
and where they deviate.
"""

from poseidon.search.rivals.hexiscale import hexiscale_search
from poseidon.search.rivals.metis import metis_search
from poseidon.search.rivals.rival import Rival, RivalAnswer, RivalTask

RIVAL_SEARCHES: dict[str, Rival] = {"metis": metis_search, "hexiscale": hexiscale_search}

__all__ = ["RIVAL_SEARCHES", "Rival", "RivalAnswer", "RivalTask"]
