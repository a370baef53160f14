"""The least node that reaches each node: the common part of wcc and scc.

    spread(starts, ways)  =  { (v, c) : c = least u in starts with a path from u to v },  the empty path included

Labels enter the loop in order of size, `ROUNDS_PER_BIT` rounds later for each bit. Small labels have spread far before
larger ones start, so nearly every node receives its final label first and sends no other label over its edges. The
caller may leave a node with an edge from a smaller node out of `starts`: the smaller label replaces its label
everywhere. Cost: an edge passes the loop each time the label of its start changes. That is about once on random graphs
with nodes numbered from 0 or at random, and several times if all numbers have the same magnitude.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit, udf

ROUNDS_PER_BIT = 256  # a label spreads for this many rounds before labels of twice its size start
EXCLUDED_COUNT = -(1 << 32)  # added to the count of an excluded node: outweighs any number of copies of it

Way = tuple[Collection, str, str]  # edges, the column to follow them from, the column that they lead to


def spread(starts: Collection, *ways: Way, otherwise: Collection | None = None) -> Collection:
    """Return for each node (`node`) the least of `starts` (node) that reaches it (`component`) over any of the ways.

    `otherwise` has labels (node, component) that give the same result, for an evaluator without rounds.
    """
    with starts.db.loop("spread") as loop:
        received = loop.variable(node=int, component=int)
        labels = starts.select("node", component=col("node"))
        started = loop.enter(labels, at=magnitude(col("component")), otherwise=otherwise)
        least = received.concat(started).group_by("node").min("component")
        sent = [
            edges.join(least, on={start: "node"}).select(node=col(end), component=col("component"))
            for edges, start, end in ways
        ]
        received.set(sent[0].concat(*sent[1:]))
        return loop.leave(least)


def without(nodes: Collection, others: Collection) -> Collection:
    """Return the distinct `nodes` that are not among `others`, with one index where an antijoin would keep three."""
    return nodes.concat(others.select("node", times=lit(EXCLUDED_COUNT)).explode("times")).distinct()


def _magnitude(labels: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    return ROUNDS_PER_BIT * np.frexp(np.maximum(labels, 0).astype(np.float64))[1].astype(np.int64)


magnitude = udf(_magnitude, returns=int)
