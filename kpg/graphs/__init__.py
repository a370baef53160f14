"""Graph algorithms as collections: kept right while edges come and go.

    from kpg import graphs
    answer = graphs.bfs(edges, roots).output("answer")

Each takes a collection with columns `src` and `dst`, a multiset of directed edges, and describes another; nothing runs
until that is installed. An index of the edges that exists is shared. Nodes are whole numbers; where no order is asked
for (reach, bfs, sssp, pagerank, k_core) any type will do.
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
