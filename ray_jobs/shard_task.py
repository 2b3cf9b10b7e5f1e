"""One shard as a Ray task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ray

from poseidon.search.shard import Failure, Outcome, Shard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poseidon.search.exact import OpenTables


@ray.remote(num_cpus=1, max_retries=0, num_returns=2)
def run_shard(
    search: int, context: NDArray[Any], actor: list[Any], shard: Shard, tables: OpenTables | None
) -> tuple[Outcome | Failure, OpenTables | None]:
    """Runs a shard; returns what came of it, and the tables that it built for others.

    `context` is a pickled `Context`, which the process unpacks once a search. Never asks Ray for anything itself: a
    task that waits gives its CPU away.
    """
    from ray_jobs.client import client_of

    client = client_of(search, context, actor[0])
    client.hand_in(tables)
    try:
        outcome: Outcome | Failure = client.worker.run(shard)
    except Exception as error:  # a defect: reported with the problem, while the other shards go on
        outcome = Failure(shard.number, f"{type(error).__name__}: {error}", again=False)
    return outcome, client.take_put()
