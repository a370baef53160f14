"""PageRank in integers. It is exact: a computation from scratch and any series of changes give the same ranks.

    rank₀(v)    =  scale                                                for every end v of an edge
    rankᵢ₊₁(v)  =  scale · 15 ÷ 100  +  Σ over (u, v) in E of  rankᵢ(u) · 85 ÷ (100 · degree(u))         (÷ rounds down)

after a fixed number of rounds. degree(u) counts the edges from u, parallel ones included. A rank is a fixed-point
number: `scale`, a million by default, is the rank of an average node. Ranks divided by their sum are the usual ones.
The rank of a node without outgoing edges is lost, not spread over all nodes, so that a change stays local. Cost: one
index of the edges with their degree; each edge passes a join and a sum in each round. A change costs, in round i, the
edges of the nodes up to i steps away that change their rank in any digit. With a smaller scale, ranks have fewer digits
and changes stay more local.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit
from kpg.errors import BadPlan
from kpg.graphs.edges import indexed, nodes_of

SCALE = 1_000_000  # the rank of an average node: six digits
MAX_ROUNDS = 40  # the remaining error is 0.85 ** 40, about 0.0015 of a rank
DAMPING_PERCENT = 85  # the share of a rank that is passed on


def pagerank(edges: Collection, rounds: int = 20, scale: int = SCALE) -> Collection:
    """Return the rank (`node`, `rank`; the average is `scale`) of each end of `edges` (src, dst) after some rounds."""
    if not 0 <= rounds <= MAX_ROUNDS:
        raise BadPlan(
            f"pagerank() cannot run {rounds} rounds",
            hint=f"Use 0 to {MAX_ROUNDS} rounds: each adds operators to the plan.",
        )
    edges = indexed(edges)
    nodes = nodes_of(edges)
    degrees = edges.group_by("src").count("degree")
    weighted = edges.join(degrees, on="src").select("src", "dst", "degree")
    base = nodes.select("node", rank=lit(scale * (100 - DAMPING_PERCENT) // 100))
    ranks = nodes.select("node", rank=lit(scale))
    for _ in range(rounds):
        passed = col("rank") * DAMPING_PERCENT // (col("degree") * 100)
        received = weighted.join(ranks, on={"src": "node"}).select(node=col("dst"), rank=passed)
        ranks = received.concat(base).group_by("node").sum("rank")
    return ranks
