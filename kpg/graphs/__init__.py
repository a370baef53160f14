"""Graph algorithms as collections, maintained while edges are inserted and removed.

    from kpg import graphs
    answer = graphs.bfs(edges, roots).output("answer")

Each function takes a collection with columns `src` and `dst`, a multiset of directed edges, and returns another
collection. Nothing runs until you install the result. An existing index of the edges is shared. Nodes are integers;
reach, bfs, sssp, pagerank and k_core, which need no order on nodes, accept any type.
"""

from kpg.graphs.bfs import bfs
from kpg.graphs.k_core import k_core
from kpg.graphs.pagerank import pagerank
from kpg.graphs.reach import reach
from kpg.graphs.scc import Components, scc
from kpg.graphs.sssp import sssp
from kpg.graphs.triangles import Triangles, triangles
from kpg.graphs.wcc import wcc

__all__ = ["Components", "Triangles", "bfs", "k_core", "pagerank", "reach", "scc", "sssp", "triangles", "wcc"]
