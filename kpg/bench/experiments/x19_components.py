"""X19: if all that is wanted of a transitive closure is which nodes reach each other, what do components take
instead?
"""

from __future__ import annotations

import math
import time

import numpy as np

from kpg.bench.data.graphs import Ints, gnp
from kpg.bench.experiment import Experiment, Printed
from kpg.bench.experiments.x18_datalog_full import Case, by_kpg
from kpg.bench.peers import sparse
from kpg.bench.peers.datalog_engines import ENGINES
from kpg.bench.run import Run
from kpg.graphs.scc import scc
from kpg.opening import open as open_database

NODES = 1_200
EDGES_A_NODE = 6


def run(run: Run) -> None:
    """The closure and the components of one random graph."""
    nodes = max(10, round(NODES * math.sqrt(run.scale)))
    edges = gnp(nodes, EDGES_A_NODE / nodes, run.seed)
    run.say("components", 0, 2)
    components, scipy = by_components(run, edges, int(edges.max()) + 1)
    run.say("closure", 1, 2)
    closure, rows = by_kpg(run, Case("tc", f"gnp-{nodes}", edges))
    run.record("components", nodes=nodes, edges=len(edges), seconds=components)
    run.record("transitive closure", nodes=nodes, edges=len(edges), seconds=closure, rows=rows)
    run.record("components, scipy", nodes=nodes, edges=len(edges), seconds=scipy)
    for peer, ask in ENGINES.items():
        found = run.ask(peer, lambda ask=ask: ask("tc", edges))  # type: ignore[misc]
        if found is not None:
            run.check(found[0] == rows, f"{peer} agrees on the closure")
            run.record(f"transitive closure, {peer}", nodes=nodes, edges=len(edges), seconds=found[1], rows=found[0])
    run.figure("closure_by_components", closure / components)


def by_components(run: Run, edges: Ints, nodes: int) -> tuple[float, float]:
    """Seconds from the edges to the strong component of each node, by kpg and by SciPy."""
    with open_database() as db:
        relation = db.input("edges", src=int, dst=int)
        output = scc(relation).nodes.output("components")
        began = time.perf_counter()
        relation.insert(edges)
        db.advance()
        seconds = time.perf_counter() - began
        table = output.snapshot()
    found = np.full(nodes, -1, np.int64)
    found[table["node"].to_numpy()] = table["component"].to_numpy()
    expected, scipy = sparse.strong(edges, nodes)
    touched = np.unique(edges)
    run.check((found[touched] == expected[touched]).all(), "the components, by SciPy")
    return seconds, scipy


EXPERIMENT = Experiment(
    id="X19",
    title="Datalog: components in place of a closure",
    paper="K-Pg, section 5.4",
    claim="Strongly connected components answer what the closure would be asked, far sooner.",
    size="the random graph of X18",
    printed=(Printed("components", "274 ms"), Printed("tc, DeALS", "312 s", "1 core")),
    memory=lambda scale: int(8e8 * scale + 4e8),
    run=run,
    peers=tuple(ENGINES),
)
