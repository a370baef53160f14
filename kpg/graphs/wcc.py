"""The weakly connected components: the sets of nodes that are connected if edges may be followed in both directions.

    wcc(E)  =  { (v, c) : v an end of an edge, c = least node with a path to v in E and its reverse }

Nodes are integers. Cost: on one worker, one operator visits each edge once or twice. On several workers it is a loop:
it needs indexes of the edges by src and by dst, shared if they exist, and each edge passes it about once in each
direction. A change costs the edges of the nodes that change their path to the least node of the component; on a graph
without bridges these are few. Each of several workers merges the components of its own edges first, and the loop has at
most one edge for each node and worker; the first change then costs as much as the load again.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.api.worker_components import within_workers
from kpg.columns.functions import col
from kpg.graphs.edges import indexed
from kpg.graphs.spread import spread


def wcc(edges: Collection) -> Collection:
    """Return the component (`node`, `component`) of each end of `edges` (src, dst), named by its least node."""
    edges = within_workers(indexed(edges))
    ends = [edges.select(node=col(end), component=col(end)) for end in ("src", "dst")]
    ways = (edges, "src", "dst"), (edges, "dst", "src")
    return spread(local_minima(edges), *ways, otherwise=ends[0].concat(ends[1]))


def local_minima(edges: Collection) -> Collection:
    """Return the nodes (`node`) without a smaller neighbour. Cost: one probe of both sorted indexes for each node."""
    ahead = edges.group_by("src").min("dst").select(node=col("src"), nearest=col("dst"))
    behind = edges.group_by("dst").min("src").select(node=col("dst"), nearest=col("src"))
    least = ahead.concat(behind).group_by("node").min("nearest")
    return least.filter(col("nearest") >= col("node")).select("node")
