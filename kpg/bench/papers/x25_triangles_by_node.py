"""X25: which joins keep up with the triangles of a skewed graph, when the edges of one node arrive in a round?

Nodes are numbered as a breadth-first crawl reaches them: the first have many edges, also among each other, and in the
worst order the edges of one node are joined with each other. With random numbers the first tenth of the nodes would
hardly have edges among each other, and no join would have work to do.
"""

from __future__ import annotations

import numpy as np

from kpg.bench.data.file_graphs import read_graph
from kpg.bench.data.graphs import Ints, crawled, rmat
from kpg.bench.experiment import THESIS_I5, Experiment, PaperFigure, snap
from kpg.bench.run import Run
from kpg.bench.triangle_joins import BINARY, HECTOR, play, rounds_of

NODES, EDGES = 20_000, 280_000  # as many edges a node as livejournal has
LIMIT_SECONDS = 20.0
MEMORY_LIMIT_BYTES = 8 << 30


def run(run: Run) -> None:
    """Run each join on the same rounds."""
    rounds = rounds_of(graph(run), 1)[: run.size(2_000, least=20)]
    spent = {}
    for way in (*HECTOR, *BINARY):
        played = play(run, way, rounds, LIMIT_SECONDS, MEMORY_LIMIT_BYTES)
        done = f"{len(played.seconds)}/{len(rounds)}"
        run.latencies(way, played.seconds, total_s=played.spent, done=done, ended=played.ended)
        spent[way] = played.spent
        if played.ended:
            run.note(f"{way} did not finish: it counts with the time until then")
    hector, binary = ([spent[way] for way in ways] for ways in (HECTOR, BINARY))
    run.figure("best_binary_by_best_hector", min(binary) / min(hector))
    run.figure("worst_binary_by_worst_hector", max(binary) / max(hector))


def graph(run: Run) -> Ints:
    """Return a graph with the skew and the numbering of livejournal, or that of the file, each edge once."""
    if run.data is not None:
        return once(read_graph(run.data)[1])
    edges = rmat(run.size(NODES, least=50), run.size(EDGES, least=500), run.seed)
    return once(crawled(once(edges)))


def once(edges: Ints) -> Ints:
    """Return each edge once, without loops."""
    space = int(edges.max()) + 1
    codes = edges[:, 0] * space + edges[:, 1]
    codes = np.unique(codes[edges[:, 0] != edges[:, 1]])
    return np.stack([codes // space, codes % space], axis=1)


EXPERIMENT = Experiment(
    id="X25",
    title="3DF: triangles, a node a round",
    paper="Optimising Distributed Dataflows in Interactive Environments, figure 6",
    claim="Worst-case optimal joins do well in any order; the worst order of binary joins runs out of memory.",
    size="an RMAT graph of 20,000 nodes and 280,000 edges, crawled; 2,000 rounds (the thesis: livejournal)",
    printed=(
        PaperFigure("worst order of binary joins", "out of memory at node 87", THESIS_I5),
        PaperFigure("best order of binary joins", "about as fast as worst-case optimal", THESIS_I5),
    ),
    memory=lambda scale: int(3e9 * min(1.0, scale) + 1e9 * scale),
    run=run,
    reads=snap(EDGES),
)
