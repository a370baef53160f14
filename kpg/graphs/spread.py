"""The least node that reaches each node: what wcc and scc are made of.

    spread(ways, nodes)  =  { (v, c) : c = least u in nodes with a path from u to v }

Labels enter the loop in order of magnitude, `ROUNDS` rounds for each bit: small ones have gone far before larger ones
start, so that nearly every node takes its final label first and no other passes its edges. A node that has a smaller
one before it never starts: its label would lose wherever it came. Both choices change the cost, never the answer.
Cost: an edge passes the loop each time the label of its start changes, on random graphs about once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit, udf

ROUNDS = 256  # a label has this many rounds to spread before those of twice its size start
NEVER = -(1 << 32)  # outweighs any number of copies of a node

Way = tuple[Collection, str, str]  # edges, the column they are followed from, the column they lead to


def spread(ways: Sequence[Way], nodes: Collection) -> Collection:
    """Of each of `nodes` (node), the least (`component`) that reaches it, following the edges of all `ways`."""
    starts = first_of_their_kind(ways, nodes).select("node", component=col("node"))
    with nodes.db.loop("spread") as loop:
        heard = loop.variable(node=int, component=int)
        entered = loop.enter(starts, at=magnitude(col("component")))
        least = heard.concat(entered).group_by("node").min("component")
        told = [
            edges.join(least, on={start: "node"}).select(node=col(end), component=col("component"))
            for edges, start, end in ways
        ]
        heard.set(told[0].concat(*told[1:]))
        return loop.leave(least)


def first_of_their_kind(ways: Sequence[Way], nodes: Collection) -> Collection:
    """The nodes that no edge leads to from a smaller one: among these is the least of all that reach any node."""
    led_to = [
        edges.filter(col(start) < col(end)).select(node=col(end), times=lit(NEVER)).explode("times")
        for edges, start, end in ways
    ]
    return nodes.concat(*led_to).distinct()


def _magnitude(labels: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    return ROUNDS * np.frexp(np.maximum(labels, 0).astype(np.float64))[1].astype(np.int64)


magnitude = udf(_magnitude, returns=int)
