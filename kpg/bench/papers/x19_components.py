"""X19: how much faster are strongly connected components than a closure, where they answer the same question?"""

from __future__ import annotations

import math
import time

import numpy as np

from kpg.bench.data.graphs import Ints, gnp
from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.papers.x18_datalog_full import DatalogCase, by_kpg
from kpg.bench.peers import scipy_graphs
from kpg.bench.peers.datalog_engines import ENGINES
from kpg.bench.run import Run
from kpg.graphs.scc import scc
from kpg.opening import open as open_database

NODES = 1_200
EDGES_PER_NODE = 6


def run(run: Run) -> None:
    """Measure the closure and the components of one random graph."""
    nodes = max(10, round(NODES * math.sqrt(run.scale)))
    edges = gnp(nodes, EDGES_PER_NODE / nodes, run.seed)
    run.progress("components", 0, 2)
    components, scipy = by_components(run, edges, int(edges.max()) + 1)
    run.progress("closure", 1, 2)
    closure, rows = by_kpg(run, DatalogCase("tc", f"gnp-{nodes}", edges))
    run.record("components", nodes=nodes, edges=len(edges), seconds=components)
    run.record("transitive closure", nodes=nodes, edges=len(edges), seconds=closure, rows=rows)
    run.record("components, scipy", nodes=nodes, edges=len(edges), seconds=scipy)
    for peer, ask in ENGINES.items():
        answer = run.ask(peer, lambda ask=ask: ask("tc", edges))  # type: ignore[misc]
        if answer is not None:
            run.check(answer.rows == rows, f"{peer} agrees on the closure")
            run.record(
                f"transitive closure, {peer}", nodes=nodes, edges=len(edges), seconds=answer.seconds, rows=answer.rows
            )
    run.figure("closure_by_components", closure / components)


def by_components(run: Run, edges: Ints, nodes: int) -> tuple[float, float]:
    """Return the seconds from inserting the edges to the strong component of each node, by kpg and by SciPy."""
    with open_database() as db:
        relation = db.input("edges", src=int, dst=int)
        output = scc(relation).nodes.output("components")
        began = time.perf_counter()
        relation.insert(edges)
        db.advance()
        seconds = time.perf_counter() - began
        table = output.snapshot()
    components = np.full(nodes, -1, np.int64)
    components[table["node"].to_numpy()] = table["component"].to_numpy()
    expected, scipy = scipy_graphs.strong(edges, nodes)
    ends = np.unique(edges)
    run.check((components[ends] == expected[ends]).all(), "the components, by SciPy")
    return seconds, scipy


EXPERIMENT = Experiment(
    id="X19",
    title="Datalog: components in place of a closure",
    paper="K-Pg, section 5.4",
    claim="Strongly connected components answer the question of the closure far sooner.",
    size="the random graph of X18",
    printed=(PaperFigure("components", "274 ms"), PaperFigure("tc, DeALS", "312 s", "1 core")),
    memory=lambda scale: int(8e8 * scale + 4e8),
    run=run,
    peers=tuple(ENGINES),
)
