"""The least node that reaches each node: what wcc and scc are made of.

    spread(ways, starts)  =  { (v, c) : c = least u in starts with a path from u to v },  a node being a path to itself

Labels enter the loop in order of magnitude, `ROUNDS` rounds for each bit: small ones have gone far before larger ones
start, so that nearly every node takes its final label first and no other passes its edges. Nodes that a smaller one
leads to may be left out of `starts`: their label would lose wherever it came.
Cost: an edge passes the loop each time the label of its start changes: about once on random graphs whose nodes are
numbered from 0, or at random; several times if all numbers are of one magnitude.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit, udf

ROUNDS = 256  # a label has this many rounds to spread before those of twice its size start
NEVER = -(1 << 32)  # outweighs any number of copies of a node

Way = tuple[Collection, str, str]  # edges, the column they are followed from, the column they lead to


def spread(starts: Collection, *ways: Way) -> Collection:
    """For each node (`node`) the least of `starts` (node) that reaches it (`component`) by edges of any of the ways."""
    with starts.db.loop("spread") as loop:
        heard = loop.variable(node=int, component=int)
        own = starts.select("node", component=col("node"))
        least = heard.concat(loop.enter(own, at=magnitude(col("component")))).group_by("node").min("component")
        told = [
            edges.join(least, on={start: "node"}).select(node=col(end), component=col("component"))
            for edges, start, end in ways
        ]
        heard.set(told[0].concat(*told[1:]))
        return loop.leave(least)


def without(nodes: Collection, others: Collection) -> Collection:
    """Each of `nodes` that is not among `others`, once: one index of both, where an antijoin would keep three."""
    return nodes.concat(others.select("node", times=lit(NEVER)).explode("times")).distinct()


def _magnitude(labels: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    return ROUNDS * np.frexp(np.maximum(labels, 0).astype(np.float64))[1].astype(np.int64)


magnitude = udf(_magnitude, returns=int)
