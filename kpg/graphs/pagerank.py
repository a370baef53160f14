"""PageRank in whole numbers: exact, hence the same whether computed at once or by any series of changes.

    rank₀(v)    =  scale                                                for every end v of an edge
    rankᵢ₊₁(v)  =  scale · 15 ÷ 100  +  Σ over (u, v) in E of  rankᵢ(u) · 85 ÷ (100 · degree(u))         (÷ rounds down)

after a fixed number of rounds; degree(u) counts the edges from u, and parallel ones count each. A rank is a fixed-point
number: `scale`, a million if not said, is the rank of an average node, and ranks divided by their sum are the customary
ones. What reaches a node without edges from it is lost, not spread over all, so that a change stays local.
Cost: one index of the edges with their degree; in each round each edge passes a join and a sum. A change costs, in
round i, the edges up to i steps away whose rank changes in any digit; fewer digits, by a smaller scale, keep it local.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit
from kpg.errors import BadPlan
from kpg.graphs.edges import indexed, nodes_of

SCALE = 1_000_000
MOST_ROUNDS = 40  # what they leave undecided is 0.85 ** 40, about a thousandth
DAMPING = 85  # hundredths of a rank that are passed on


def pagerank(edges: Collection, rounds: int = 20, scale: int = SCALE) -> Collection:
    """The rank (`node`, `rank`, the average being `scale`) of each end of `edges` (src, dst) after some rounds."""
    if not 0 <= rounds <= MOST_ROUNDS:
        raise BadPlan(f"pagerank() of {rounds} rounds", hint=f"0 to {MOST_ROUNDS}: each is a part of the plan.")
    edges = indexed(edges)
    nodes = nodes_of(edges)
    degrees = edges.group_by("src").count("degree")
    ways = edges.join(degrees, on="src").select("src", "dst", "degree")
    given = nodes.select("node", rank=lit(scale * (100 - DAMPING) // 100))
    ranks = nodes.select("node", rank=lit(scale))
    for _ in range(rounds):
        passed = col("rank") * DAMPING // (col("degree") * 100)
        received = ways.join(ranks, on={"src": "node"}).select(node=col("dst"), rank=passed)
        ranks = received.concat(given).group_by("node").sum("rank")
    return ranks
